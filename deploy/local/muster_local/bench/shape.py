"""What is run: the gangs of a benchmark and the nodes under them."""

from dataclasses import dataclass
from typing import Any

from muster import wire
from muster.errors import InvalidSpec

NAMESPACE = "bench"


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of one run."""

    nodes: int
    gangs: int
    gang_size: int
    gpus_per_pod: int = 1
    required: str | None = None
    """The topology level within which each gang must lie."""
    duration_seconds: int = 0
    """How long each pod runs; 0 means until the end of the benchmark."""

    def __post_init__(self) -> None:
        for flag in ("nodes", "gangs", "gang_size", "gpus_per_pod"):
            if getattr(self, flag) < 1:
                raise InvalidSpec(
                    f"--{flag.replace('_', '-')}", f"must be at least 1, is {getattr(self, flag)}"
                )

    @property
    def pods(self) -> int:
        """Pods of all gangs together."""
        return self.gangs * self.gang_size

    def job(self, index: int) -> dict[str, Any]:
        """The manifest of one gang."""
        spec: dict[str, Any] = {
            "replicas": self.gang_size,
            "gpusPerReplica": self.gpus_per_pod,
            "template": {
                "metadata": {"annotations": self._annotations()},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {"name": "main", "image": "fake", "command": ["train"]},
                    ],
                },
            },
        }
        if self.required is not None:
            spec["topology"] = {"required": self.required}
        return {
            "apiVersion": wire.API_VERSION,
            "kind": "TrainingJob",
            "metadata": {"name": f"gang-{index}", "namespace": NAMESPACE},
            "spec": spec,
        }

    def _annotations(self) -> dict[str, str]:
        """KWOK ends a pod with this annotation after the delay that it names."""
        if not self.duration_seconds:
            return {}
        return {"pod-complete.stage.kwok.x-k8s.io/delay": f"{self.duration_seconds}s"}
