"""How the ranks of a gang agree, outside the way of their training's own communication."""

import sys
from typing import Any, Protocol, TypeVar

from muster.errors import Unavailable
from muster_sdk.settings import Settings

T = TypeVar("T")


class Ranks(Protocol):
    """All processes of a gang; every method is called by all of them, in the same order."""

    @property
    def rank(self) -> int:
        """This process."""

    @property
    def size(self) -> int:
        """How many there are."""

    def gather(self, value: T) -> list[T]:
        """Everybody's value, in order of rank, for everybody."""

    def from_first(self, value: T) -> T:
        """The value of rank 0, for everybody."""


class Alone:
    """A single process."""

    rank = 0
    size = 1

    def gather(self, value: T) -> list[T]:
        """Its own value."""
        return [value]

    def from_first(self, value: T) -> T:
        """Its own value."""
        return value


class TorchRanks:
    """The processes of `torch.distributed`, through a side group on the CPU.

    A group of our own keeps our messages apart from the training's, and works the same where
    that one runs on NCCL and its devices are busy.
    """

    def __init__(self, distributed: Any) -> None:
        self._distributed = distributed
        self._group = distributed.new_group(backend="gloo")
        self.rank: int = distributed.get_rank()
        self.size: int = distributed.get_world_size()

    def gather(self, value: T) -> list[T]:
        """Everybody's value."""
        values: list[Any] = [None] * self.size
        self._distributed.all_gather_object(values, value, group=self._group)
        return values

    def from_first(self, value: T) -> T:
        """The value of rank 0."""
        values = [value]
        self._distributed.broadcast_object_list(values, src=0, group=self._group)
        return values[0]


class Board(Protocol):
    """Where one process leaves a word for the others; nobody waits."""

    def post(self, key: str, text: str) -> None:
        """Leave *text* under *key*."""

    def read(self, key: str) -> str | None:
        """What is there; None if nothing is yet."""


class TorchBoard:
    """The store through which `torch.distributed` brought the processes together."""

    def __init__(self, distributed: Any) -> None:
        self._store = distributed.distributed_c10d._get_default_store()

    def post(self, key: str, text: str) -> None:
        """Leave *text* under *key*."""
        self._store.set(key, text)

    def read(self, key: str) -> str | None:
        """What is there."""
        return self._store.get(key).decode() if self._store.check([key]) else None


class Gang:
    """Finds out how this process can speak to the others, once that is needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ranks: Ranks | None = None
        self._board: Board | None = None

    @property
    def rank(self) -> int:
        """This process among all; right before `torch.distributed` is initialised, too."""
        distributed = _distributed()
        return self._settings.rank if distributed is None else int(distributed.get_rank())

    def board(self) -> Board | None:
        """Where rank 0 leaves words for the others; None where there are none to be reached."""
        distributed = _distributed()
        if distributed is None or distributed.get_world_size() == 1:
            return None
        if self._board is None:
            self._board = TorchBoard(distributed)
        return self._board

    def ranks(self) -> Ranks:
        """The others, or `Unavailable` where there are some that cannot be reached."""
        if self._ranks is None:
            distributed = _distributed()
            if distributed is not None:
                self._ranks = TorchRanks(distributed)
            elif self._settings.world_size > 1:
                raise Unavailable(
                    f"this is one of {self._settings.world_size} processes, and they agree on a "
                    "checkpoint through torch.distributed: call "
                    "torch.distributed.init_process_group() first"
                )
            else:
                self._ranks = Alone()
        return self._ranks


def _distributed() -> Any:
    """`torch.distributed`, if the script has initialised it; torch is never imported for this."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed
