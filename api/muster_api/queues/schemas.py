"""The JSON of queues."""

from pydantic import BaseModel, ConfigDict


class QueueItem(BaseModel):
    """A queue and its use, in GPUs."""

    name: str
    parent: str | None
    weight: int
    guaranteed: int
    limit: int | dict[str, int] | None
    """GPUs that it may hold at once, in all or by model; null means no limit."""
    usage: int
    """GPUs that its jobs hold."""
    share: float
    pending_gpus: int
    """GPUs that its pending jobs wait for."""
    borrowed: int
    paused: bool


class QueueList(BaseModel):
    """All queues."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "items": [
                    {
                        "name": "research",
                        "parent": None,
                        "weight": 1,
                        "guaranteed": 0,
                        "limit": 64,
                        "usage": 16,
                        "share": 16.0,
                        "pending_gpus": 8,
                        "borrowed": 0,
                        "paused": False,
                    }
                ]
            }
        }
    )

    items: list[QueueItem]
