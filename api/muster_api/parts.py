"""What the application is made of, and how routes get at it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry

from muster_api.auth import Reviewer
from muster_api.cluster import Cluster
from muster_api.scheduler import NoScheduler, Scheduler
from muster_db.database import Database


@dataclass(frozen=True, slots=True)
class Parts:
    """What the application is made of."""

    database: Database
    cluster: Cluster
    reviewer: Reviewer
    clock: Callable[[], int]
    """Milliseconds since the epoch."""
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    scheduler: Scheduler = field(default_factory=NoScheduler)


def parts_of(request: Request) -> Parts:
    """The parts of this API."""
    parts: Parts = request.app.state.parts
    return parts


PartsOf = Annotated[Parts, Depends(parts_of)]
