"""Where the programs of a cluster come from.

In this order: the `KUBEBUILDER_ASSETS` directory or PATH (the pinned minor version only), the
cache, the official download, and building the pinned Go modules. Nothing here needs root.
"""

from muster_local.binaries.search import Missing, find, find_all

__all__ = ["Missing", "find", "find_all"]
