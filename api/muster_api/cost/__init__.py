"""What a job cost, line by line and epoch by epoch."""

from muster_api.cost.routes import router

__all__ = ["router"]
