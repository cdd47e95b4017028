"""What the scheduler sees and what it decided, for administrators."""

from muster_api.decisions.routes import router

__all__ = ["router"]
