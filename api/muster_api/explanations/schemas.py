"""The JSON of explanations and dry runs."""

from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

_EXPLANATION: Final[dict[str, Any]] = {
    "job": "digits",
    "namespace": "vision",
    "source": "scheduler",
    "code": "TopologyUnsatisfied",
    "message": "needs 16 replicas in one rack; the roomiest, r1, holds 12",
    "queue_position": 1,
    "predicted_start": "2026-12-01T10:30:00Z",
    "unknown_because": None,
    "waits_for": "vision/large",
    "changes": [
        {
            "change": "ask for 12 in place of 16 replicas",
            "starts": True,
            "edits": [
                {
                    "kind": "TrainingJob",
                    "name": "vision/digits",
                    "spec": {"replicas": 12, "minReplicas": 12},
                }
            ],
            "evicts": [],
        }
    ],
    "changes_complete": True,
    "evicts": [],
}
_DRY_RUN: Final[dict[str, Any]] = {
    "job": "digits",
    "namespace": "vision",
    "verdict": "starts",
    "code": None,
    "message": "8 GPUs on 1 node in rack r1",
    "queue_position": None,
    "predicted_start": "2026-12-01T09:30:30Z",
    "waits_for": None,
    "placement": ["node-1"],
    "victims": [
        {
            "job": "vision/sweep-7",
            "replicas": None,
            "right": "priority",
            "lost_gpu_seconds": 480,
            "micro_usd": 524000,
            "cost": "$0.524000",
        }
    ],
    "delayed": [
        {"job": "vision/next", "from": "2026-12-01T10:00:00Z", "to": "2026-12-01T10:40:00Z"}
    ],
}


class Source(StrEnum):
    """Where an explanation comes from."""

    SCHEDULER = "scheduler"
    STATUS = "status"


class EditItem(BaseModel):
    """A merge patch of the spec of one object."""

    kind: str
    name: str
    spec: dict[str, Any]


class ChangeItem(BaseModel):
    """A change that was tried."""

    change: str
    starts: bool
    """It started the job in the dry run: always true."""
    edits: list[EditItem]
    evicts: list[str]
    """Jobs that would have to leave for it."""


class Explanation(BaseModel):
    """Why a job waits, and what would start it."""

    model_config = ConfigDict(json_schema_extra={"example": _EXPLANATION})

    job: str
    namespace: str
    source: Source
    """`status` where the scheduler was not asked: the operator is away, or does not plan the job.
    """
    code: str
    """The reason code; `Placed` for a job that has its nodes or is about to get them."""
    message: str
    queue_position: int | None
    predicted_start: str | None
    """Null where nobody can know."""
    unknown_because: str | None
    """Why nobody can."""
    waits_for: str | None
    """The job whose end makes it start then, as `namespace/name`."""
    changes: list[ChangeItem]
    changes_complete: bool
    """Whether all changes were tried: in a large, full cluster there may not be time."""
    evicts: list[str]
    """Jobs that leave for it, where it is about to start."""


class DryRunQuery(BaseModel):
    """Where the job would be submitted."""

    model_config = ConfigDict(extra="forbid")

    namespace: str | None = Field(
        None, description="Where, if the manifest does not say; else `default`."
    )


class VictimItem(BaseModel):
    """A job that would have to make room."""

    job: str
    replicas: int | None
    """Surplus replicas that it would lose; null means all of it."""
    right: str
    """By which right: `priority`, `surplus`, `guarantee`, `share` or `reservation`."""
    lost_gpu_seconds: int
    """Work since its last checkpoint, and a restart: lost unless it saves once more."""
    micro_usd: int | None
    """What that work has cost; null where GPU time has no price."""
    cost: str


class DelayItem(BaseModel):
    """A job that would start later."""

    model_config = ConfigDict(populate_by_name=True)

    job: str
    since: str = Field(alias="from", serialization_alias="from")
    to: str | None
    """Null where nobody would know any more."""


class DryRun(BaseModel):
    """What a job would do."""

    model_config = ConfigDict(json_schema_extra={"example": _DRY_RUN})

    job: str
    namespace: str
    verdict: str
    """`starts`, `waits` or `never`."""
    code: str | None
    """Why it would wait."""
    message: str
    queue_position: int | None
    predicted_start: str | None
    waits_for: str | None
    placement: list[str]
    """The node of each replica, in rank order, where it starts now."""
    victims: list[VictimItem]
    delayed: list[DelayItem]
