"""Reports of training processes: taken once, acknowledged when they are stored."""

from muster_api.reports.routes import router

__all__ = ["router"]
