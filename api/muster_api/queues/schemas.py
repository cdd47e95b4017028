"""The JSON of queues."""

from pydantic import BaseModel, ConfigDict


class QueueItem(BaseModel):
    """A queue and its use with all below it, in GPUs."""

    name: str
    parent: str | None
    depth: int
    """How many queues are above it."""
    weight: float
    guaranteed: int | dict[str, int]
    """GPUs that it gets back whenever it asks for them, in all or by model."""
    limit: int | dict[str, int] | None
    """GPUs that it may hold at once, in all or by model; null means no limit."""
    usage: int
    """GPUs that its jobs hold."""
    usage_by_model: dict[str, int]
    decayed_usage: float | None
    """What its share counts: with a half-life, what it held before counts too."""
    share: float | None
    """Negative below the guarantee; the lowest one is next. Null where it is infinite (weight 0).
    """
    pending_gpus: int
    """GPUs that its pending jobs wait for."""
    borrowed: int
    """GPUs held beyond the guarantee, which others may reclaim."""
    order: str
    paused: bool


class QueueList(BaseModel):
    """All queues, each behind the one above it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "items": [
                    {
                        "name": "research",
                        "parent": None,
                        "depth": 0,
                        "weight": 1.0,
                        "guaranteed": 8,
                        "limit": 64,
                        "usage": 16,
                        "usage_by_model": {"H100": 16},
                        "decayed_usage": 16.0,
                        "share": 8.0,
                        "pending_gpus": 8,
                        "borrowed": 8,
                        "order": "fifo",
                        "paused": False,
                    }
                ]
            }
        }
    )

    items: list[QueueItem]
