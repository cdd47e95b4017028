"""Nodes, with who holds what on them."""

from muster_api.nodes.routes import router

__all__ = ["router"]
