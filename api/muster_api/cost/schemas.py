"""The JSON of costs and epochs."""

from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

_COST: Final[dict[str, Any]] = {
    "job": "digits",
    "namespace": "vision",
    "uid": "8d7c2f6e-6f0a-4a53-9a55-0d1c7f1b8e11",
    "total_micro_usd": 31440,
    "total": "$0.031440",
    "gpu_seconds": 28.8,
    "gpu_milliseconds": 28800,
    "lines": [
        {
            "key": "1",
            "class": "startup",
            "gpu_seconds": 4.8,
            "gpu_milliseconds": 4800,
            "micro_usd": 5240,
            "cost": "$0.005240",
        },
        {
            "key": "0",
            "class": "epoch",
            "gpu_seconds": 24.0,
            "gpu_milliseconds": 24000,
            "micro_usd": 26200,
            "cost": "$0.026200",
        },
    ],
    "priced": True,
    "simulated": False,
    "end_uncertain": False,
    "prices": [
        {
            "gpu_model": "H100",
            "capacity_type": "on-demand",
            "micro_usd_per_gpu_hour": 3930000,
            "from": "2026-01-01T00:00:00Z",
        }
    ],
}


class By(StrEnum):
    """What the lines of a bill are for."""

    EPOCH = "epoch"
    ATTEMPT = "attempt"


class CostLine(BaseModel):
    """The GPU time of one class and key."""

    key: str
    """The epoch for `epoch` and `interrupted` (of lines by epoch), the attempt for the others."""
    kind: str = Field(serialization_alias="class")
    """`startup`, `restart`, `epoch`, `interrupted`, `shutdown` or `other`."""
    gpu_seconds: float
    """In 64ths of a second, so that the numbers of all lines add up exactly."""
    gpu_milliseconds: int
    micro_usd: int | None
    """Null where some of the time has no price."""
    cost: str


class Price(BaseModel):
    """A price from a moment on."""

    gpu_model: str
    capacity_type: str
    micro_usd_per_gpu_hour: int
    since: str = Field(serialization_alias="from")


class Cost(BaseModel):
    """What a job cost until now. The lines add up to the totals exactly."""

    model_config = ConfigDict(json_schema_extra={"example": _COST})

    job: str
    namespace: str
    uid: str
    total_micro_usd: int | None
    """Null where any GPU time has no price."""
    total: str
    gpu_seconds: float
    gpu_milliseconds: int
    lines: list[CostLine]
    priced: bool
    simulated: bool
    """Some of the GPUs exist in a table only."""
    end_uncertain: bool
    prices: list[Price]
    """The rows that were used."""


class EpochItem(BaseModel):
    """One epoch, over all attempts that worked on it."""

    epoch: int
    attempts: list[int]
    started: str | None
    finished: str | None
    seconds: float
    """Time spent in it, over all attempts."""
    gpu_seconds: float
    micro_usd: int | None
    cost: str
    metrics: dict[str, float | str]
    """As reported at its end; NaN and the infinities are words."""


class EpochList(BaseModel):
    """The epochs of a job, in order."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "items": [
                    {
                        "epoch": 0,
                        "attempts": [1],
                        "started": "2026-12-01T09:30:06.300Z",
                        "finished": "2026-12-01T09:30:07.800Z",
                        "seconds": 1.5,
                        "gpu_seconds": 24.0,
                        "micro_usd": 26200,
                        "cost": "$0.026200",
                        "metrics": {"loss": 0.31, "accuracy": 0.91},
                    }
                ]
            }
        }
    )

    items: list[EpochItem]
