"""A whole Kubernetes API on one machine, without root and without containers.

Real etcd, kube-apiserver and kube-controller-manager on loopback, nodes whose pods are local
processes, and the platform on top. Everything that a cluster owns lies in one directory under
`MUSTER_HOME`, and every process is known by its id and start time; there is no daemon.

    versions, binaries    which programs, and where they come from
    certificates, ports   what they need before they start
    component             one process: start, recognise, end
    control_plane         etcd, API server, controllers: also used alone, by tests and benchmarks
    apply, access         what goes into the API server first: manifests, tokens, kubeconfigs
    state, lifecycle      a named cluster: `up`, `down`
    commands              `muster local`
"""
