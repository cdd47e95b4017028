"""What `Run.save` and `Run.restore` give back."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Saved(NamedTuple):
    """A verified checkpoint."""

    id: str
    """`step-100`."""
    step: int
    uri: str
    bytes: int
    seconds: float
    """How long the training stood still for it."""


class Restored(Mapping[str, Any]):
    """What a run starts from: by name, everything that `save` was given. Empty on a fresh start.

    False if there was nothing to resume: `if not run.restore(model=model): warm_up(model)`.
    """

    def __init__(
        self,
        id: str = "",  # noqa: A002 - the word that reports and manifests use
        step: int = 0,
        epoch: int = 0,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = id
        """The checkpoint; empty on a fresh start."""
        self.step = step
        """Steps done before."""
        self.epoch = epoch
        """The epoch with which `run.epochs` goes on."""
        self._state = state or {}

    @property
    def is_resumed(self) -> bool:
        """Whether there was a checkpoint."""
        return bool(self.id)

    def __bool__(self) -> bool:
        return self.is_resumed

    def __getitem__(self, name: str) -> Any:
        return self._state[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._state)

    def __len__(self) -> int:
        return len(self._state)

    def __repr__(self) -> str:
        return f"Restored(id={self.id!r}, step={self.step}, epoch={self.epoch})"
