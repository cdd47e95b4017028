"""Why a job waits, and what a job would do that is not submitted yet."""

from muster_api.explanations.routes import router

__all__ = ["router"]
