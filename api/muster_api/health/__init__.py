"""Whether the process lives and can work, and its metrics; for probes, without a token."""

from muster_api.health.routes import install

__all__ = ["install"]
