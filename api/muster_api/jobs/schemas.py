"""The JSON of jobs."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

MOST_ON_A_PAGE: Final = 500

_ITEM: Final[dict[str, Any]] = {
    "namespace": "vision",
    "name": "digits",
    "uid": "8d7c2f6e-6f0a-4a53-9a55-0d1c7f1b8e11",
    "queue": "default",
    "phase": "Running",
    "reason": "",
    "message": "",
    "replicas": 2,
    "gpus": 16,
    "attempt": 1,
    "priority": 0,
    "user": "ada",
    "submitted": "2026-12-01T09:30:00Z",
    "started": "2026-12-01T09:30:04.120Z",
    "finished": None,
    "deleting": None,
    "deleted": None,
    "end_uncertain": False,
    "progress": {"epoch": 3, "step": 1200, "eta": None},
    "cost_micro_usd": 1234567,
    "cost": "$1.23",
}
_DETAIL: Final[dict[str, Any]] = {
    "generation": 1,
    "gang": "2/2",
    "queue_position": None,
    "conditions": [
        {
            "type": "Running",
            "status": "True",
            "reason": "Running",
            "message": "",
            "last_transition_time": "2026-12-01T09:30:04Z",
            "observed_generation": 1,
        }
    ],
    "attempts": [
        {
            "attempt": 1,
            "decided_at": "2026-12-01T09:30:01.500Z",
            "running_at": "2026-12-01T09:30:04.120Z",
            "ended_at": None,
            "outcome": None,
            "cause": None,
            "message": None,
            "replicas": 2,
            "gpus": 16,
            "nodes": ["node-1", "node-2"],
        }
    ],
    "restarts": {"preemption": 0, "infrastructure": 0, "user": 0},
    "checkpoint": {
        "latest": "step-1200",
        "verified": "step-1200",
        "step": 1200,
        "at": "2026-12-01T09:41:12Z",
    },
    "placement": {
        "attempt": 1,
        "decided_at": "2026-12-01T09:30:01.500Z",
        "port": 29500,
        "nodes": ["node-1", "node-2"],
        "why": "16 GPUs on 2 nodes in rack r1",
    },
}


class JobQuery(BaseModel):
    """Which jobs, and which page of them."""

    model_config = ConfigDict(extra="forbid")

    namespace: str | None = Field(
        None, description="Of this namespace only; needed by who may not list all."
    )
    queue: str | None = Field(None, description="Of this queue only.")
    phase: str | None = Field(None, description="In this phase only.")
    deleted: bool = Field(False, description="With jobs that were deleted.")
    limit: int = Field(MOST_ON_A_PAGE, ge=1, le=MOST_ON_A_PAGE)
    after: str | None = Field(
        None, description="`next` of the page before.", examples=["1764581400000-8d7c"]
    )


class SubmitQuery(BaseModel):
    """How to submit."""

    model_config = ConfigDict(extra="forbid")

    namespace: str | None = Field(
        None, description="Where, if the manifest does not say; else `default`."
    )
    is_dry_run: bool = Field(
        False, alias="dryRun", description="Only ask whether it would be accepted."
    )


class Progress(BaseModel):
    """How far the ranks reported to be."""

    epoch: int | None = None
    step: int | None = None
    eta: str | None = None


class Checkpoint(BaseModel):
    """The newest checkpoints, by id; `step` and `at` are those of the verified one."""

    latest: str | None = None
    verified: str | None = None
    step: int | None = None
    at: str | None = None


class JobItem(BaseModel):
    """A job in a list."""

    model_config = ConfigDict(json_schema_extra={"example": _ITEM})

    namespace: str
    name: str
    uid: str
    queue: str
    phase: str
    reason: str
    message: str
    replicas: int
    gpus: int
    attempt: int
    priority: int
    user: str | None
    submitted: str
    started: str | None
    finished: str | None
    deleting: str | None
    deleted: str | None
    end_uncertain: bool
    """It vanished while nobody watched: its end is the last moment at which it was known."""
    progress: Progress
    cost_micro_usd: int | None
    """Null where GPU time has no price."""
    cost: str


class JobDetail(JobItem):
    """A job with everything that is known of it."""

    model_config = ConfigDict(json_schema_extra={"example": {**_ITEM, **_DETAIL}})

    generation: int
    gang: str | None
    queue_position: int | None
    conditions: list[dict[str, Any]]
    attempts: list[dict[str, Any]]
    restarts: dict[str, int]
    checkpoint: Checkpoint
    placement: dict[str, Any] | None
    """Null while it holds no GPUs."""


class JobList(BaseModel):
    """A page of jobs, newest first."""

    model_config = ConfigDict(json_schema_extra={"example": {"items": [_ITEM], "next": None}})

    items: list[JobItem]
    next: str | None = None
    """Give it as `after` to read on; null on the last page."""


MANIFEST: Final = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "TrainingJob",
    "metadata": {"name": "digits"},
    "spec": {
        "queue": "default",
        "replicas": 2,
        "gpusPerReplica": 8,
        "template": {
            "spec": {
                "containers": [{"name": "train", "image": "team/digits:1", "args": ["train.py"]}]
            }
        },
    },
}
"""An example of what can be submitted."""
