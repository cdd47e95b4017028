"""The JSON of nodes."""

from pydantic import BaseModel, ConfigDict


class NodeItem(BaseModel):
    """A node and its GPUs."""

    name: str
    domains: dict[str, str]
    """Its domain at each level of the topology, where it is labelled with one."""
    gpus: int
    """Healthy ones."""
    free: int
    """Those that a job could get now: none while the node is down or cordoned."""
    held_by: dict[str, int]
    """GPUs by job, as `namespace/name`; `namespace/…` for jobs that the caller may not list."""
    fragmented: int
    """Free ones that no pending job can use."""
    bad_gpus: int
    gpu_model: str | None
    capacity_type: str | None
    state: str
    """`up`, `cordoned`, `drained` or `down`."""


class NodeList(BaseModel):
    """All nodes, by topology."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "items": [
                    {
                        "name": "node-1",
                        "domains": {"block": "b1", "rack": "r1"},
                        "gpus": 8,
                        "free": 3,
                        "held_by": {"vision/digits": 5},
                        "fragmented": 3,
                        "bad_gpus": 0,
                        "gpu_model": "H100",
                        "capacity_type": "on-demand",
                        "state": "up",
                    }
                ],
                "levels": ["block", "rack"],
                "gpus": 8,
                "free_gpus": 3,
                "fragmented_gpus": 3,
            }
        }
    )

    items: list[NodeItem]
    levels: list[str]
    """Outermost first."""
    gpus: int
    free_gpus: int
    fragmented_gpus: int
