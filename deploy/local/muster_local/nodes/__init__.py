"""Process nodes: Kubernetes nodes whose pods run as real processes of this machine.

One process, `python -m muster_local.nodes`, plays the kubelet for all of them:

    nodes.json -> table -> host -> node   registration, lease, one watch of its pods
                                    |
                                    v
                                  worker   one pod: admission, volumes, containers, status, removal
                                    |
                                    v
                                 instance  one run of one container
                                    |
                                    v
                                 launcher  its parent process: mounts, log, signals, exit code

What a pod needs is found in values (`admission`, `environment`, `fields`, `projection`,
`substitution`, `status` compute and touch nothing); the rest acts. Everything that must outlive
this process is in files under its directory, and the launchers live on when it dies, so that a
restarted process finds its pods again as they are.

Nothing here imports the operator, and nothing outside relies on more than `table` (which nodes
there are), `leftovers` (end what a killed process left) and the flags of `__main__`.
"""
