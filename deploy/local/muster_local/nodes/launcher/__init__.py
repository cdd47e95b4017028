"""The parent process of one container.

    python -m muster_local.nodes.launcher RUN_DIRECTORY

It mounts the container's volumes in a private mount namespace, runs the command, keeps its log,
hands signals on, ends whatever the command leaves behind, and writes how it ended. It goes on
when the node process dies, which is how a restarted one finds the exit code.

SIGTERM to it asks the container to stop; SIGUSR2 kills all of it.

Only the standard library, and no site packages: there is one of these for each container, and it
must be there in a few milliseconds.
"""
