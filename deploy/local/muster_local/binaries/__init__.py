"""Where the programs of a cluster come from.

In this order: the `KUBEBUILDER_ASSETS` directory or PATH (the pinned minor version only), the
cache, the official download, and building the pinned Go modules. Nothing here needs root.
`python -m muster_local.binaries` fills the cache and prints where the programs are.
"""

from muster_local.binaries.search import Missing, find, find_all

__all__ = ["Missing", "find", "find_all"]
