"""Jobs: submitting, listing, reading and cancelling them."""

from muster_api.jobs.routes import router

__all__ = ["router"]
