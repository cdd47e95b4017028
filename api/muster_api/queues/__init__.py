"""Queues, with what their jobs hold and wait for."""

from muster_api.queues.routes import router

__all__ = ["router"]
