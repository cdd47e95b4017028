"""The JSON around reports; their items are those of `muster.reports`."""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict

REPORT: Final = {
    "attempt": 1,
    "replica": 0,
    "sequence": 7,
    "items": [
        {"kind": "epoch", "at": "2026-12-01T09:30:06.3Z", "epoch": 0, "event": "start", "step": 0},
        {"kind": "step", "at": "2026-12-01T09:30:07Z", "epoch": 0, "step": 12},
        {
            "kind": "metrics",
            "at": "2026-12-01T09:30:07Z",
            "epoch": 0,
            "step": 12,
            "values": {"loss": 0.31, "gradient_norm": "NaN"},
        },
        {
            "kind": "checkpoint",
            "at": "2026-12-01T09:30:08Z",
            "id": "step-12",
            "step": 12,
            "state": "verified",
            "bytes": 1048576,
            "world_size": 4,
            "uri": "file:///checkpoints/8d7c/step-12",
        },
        {"kind": "heartbeat", "at": "2026-12-01T09:30:09Z"},
    ],
}
"""An example of a report."""


class ReportedStatus(BaseModel):
    """What Muster wants of the ranks."""

    directive: dict[str, Any] | None = None


class Acknowledgement(BaseModel):
    """The report is stored, or was before."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "acknowledged": 7,
                "status": {
                    "directive": {
                        "id": "drain-node-3",
                        "kind": "checkpoint",
                        "deadline": "2026-12-01T09:32:00Z",
                    }
                },
            }
        }
    )

    acknowledged: int
    status: ReportedStatus
