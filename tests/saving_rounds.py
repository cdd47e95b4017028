"""Rounds of a gang that save to one store, and resume from it."""

from datetime import UTC, datetime

from muster.checkpoints import Manifest, Round
from muster.reports import CheckpointState
from muster_sdk.membership import Membership
from muster_sdk.ranks import Alone, Ranks
from muster_sdk.restoring import Restorer
from muster_sdk.saving import Saver
from muster_sdk.stores import Store

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
FIRST = Round(1, 0)


def now() -> datetime:
    return NOW


class Gang:
    """One round of a gang over one store; keeps what was told."""

    def __init__(self, store: Store, round_: Round | None = FIRST) -> None:
        self.store = store
        self.told: list[tuple[str, str]] = []
        self.membership = Membership(store, round_, "uid", now)

    def saver(self, ranks: Ranks | None = None) -> Saver:
        def told(state: CheckpointState, manifest: Manifest) -> None:
            self.told.append((manifest.id, state.value))

        return Saver(self.store, ranks or Alone(), self.membership, "uid", now, told)

    def save(self, step: int, value: object = "x", ranks: Ranks | None = None) -> Manifest:
        ranks = ranks or Alone()
        return self.saver(ranks).save(step, {f"part-{ranks.rank}.npz": {"state": value}})

    def restorer(self, ranks: Ranks | None = None) -> Restorer:
        return Restorer(self.store, ranks or Alone(), self.membership, "uid")

    def resumes_from(self) -> str | None:
        chosen = self.restorer().choose()
        return chosen and chosen.location.directory
