"""This gang's round in the store. Only rank 0 has one; the others hear from it."""

from collections.abc import Callable, Collection
from datetime import datetime

from muster.checkpoints import (
    Listing,
    Location,
    Round,
    RoundStart,
    documents_in,
    newest_round,
    raw_of_round_start,
    round_start_of,
)
from muster.errors import InvalidSpec
from muster_sdk.errors import RestoreFailed, StaleRound
from muster_sdk.stores import Store
from muster_sdk.stores.probe import prove_exclusive


class Membership:
    """Enters its round once, and refuses to go on when a later one has begun.

    Outside a job nobody hands out rounds, so each run takes the next attempt.
    """

    def __init__(
        self, store: Store, given: Round | None, job_uid: str, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._given = given
        self._job_uid = job_uid
        self._now = now
        self._entered: Round | None = None

    def sizes(self) -> dict[str, int]:
        """What the store holds now, once it has proved that it can hold checkpoints."""
        if self._entered is None:
            prove_exclusive(self._store)
        sizes = self._store.sizes()
        self._refuse_if_stale(sizes)
        return sizes

    def listing(self) -> Listing:
        """The same, with all that it takes to choose a checkpoint."""
        sizes = self.sizes()
        contents: dict[str, bytes] = {}
        for name in documents_in(sizes):
            try:
                with self._store.reading(name) as file:
                    contents[name] = file.read()
            except FileNotFoundError:
                del sizes[name]  # Removed since it was listed, by the round that owns it.
        return Listing(sizes, contents)

    def round(self, names: Collection[str]) -> Round:
        """The round that this gang is, or is about to enter."""
        if self._entered is not None:
            return self._entered
        if self._given is not None:
            return self._given
        last = newest_round(names)
        return Round(last.attempt + 1 if last else 1, 0)

    def enter(self, names: Collection[str], resumes_from: Location | None) -> Round:
        """Say in the store what this round resumes from, before it saves anything."""
        if self._entered is not None:
            return self._entered
        entering = self.round(names)
        start = RoundStart(entering, resumes_from, self._job_uid, self._now())
        try:
            self._store.create(entering.document, raw_of_round_start(start))
        except FileExistsError:
            self._accept_own(entering)
        self._entered = entering
        return entering

    def _refuse_if_stale(self, names: Collection[str]) -> None:
        mine, newest = self.round(names), newest_round(names)
        if newest is not None and newest > mine:
            raise StaleRound(
                f"{newest} has begun at {self._store.uri}: this process ({mine}) must end and "
                "saves nothing more"
            )

    def _accept_own(self, entering: Round) -> None:
        """The round had begun and its processes were restarted; what it descends from stands."""
        if self._given is None:
            raise StaleRound(f"another run has just begun at {self._store.uri}") from None
        try:
            with self._store.reading(entering.document) as file:
                round_start_of(file.read(), entering)
        except InvalidSpec as error:
            place = f"{self._store.uri}/{entering.document}"
            raise RestoreFailed(f"{place} cannot be read: {error}") from error
