"""What a training's state consists of, between the script's objects and the commit protocol."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from muster.checkpoints import Manifest, Round
from muster.reports import CheckpointState
from muster_sdk import trees
from muster_sdk.agreement import all_do
from muster_sdk.errors import RestoreFailed, SaveFailed
from muster_sdk.membership import Membership
from muster_sdk.ranks import Gang
from muster_sdk.restoring import SHARED, Restorer, own_part
from muster_sdk.results import Saved
from muster_sdk.saving import Saver
from muster_sdk.settings import Settings
from muster_sdk.stores import Store
from muster_sdk.telling import Telling

log = logging.getLogger(__name__)

_STATE: Final = "state"
_PROGRESS: Final = "progress"
_PER_RANK: Final = "per_rank"


@dataclass(frozen=True, slots=True)
class Loaded:
    """One rank's view of a checkpoint."""

    manifest: Manifest
    state: Mapping[str, Any]
    progress: Mapping[str, Any]
    """On a rank that the gang has gained since, that of rank 0 without its generators."""
    own: frozenset[str] = frozenset()
    """What in `state` each rank holds for itself."""

    @property
    def id(self) -> str:
        """`step-100`."""
        return self.manifest.id

    def put_back(self, name: str, target: Any) -> None:
        """Give *target* the state that was saved under *name*."""
        if name not in self.state:
            saved = ", ".join(sorted(self.state)) or "nothing"
            raise RestoreFailed(f"{self.id} holds no {name!r}; it holds {saved}")
        target = trees.unwrapped(target)
        if not hasattr(target, "load_state_dict"):
            raise RestoreFailed(
                f"{name} has no load_state_dict() to restore it: take its value from what "
                "restore() gives back"
            )
        target.load_state_dict(self.state[name])


class Checkpoints:
    """A gang's checkpoints at one URI."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        gang: Gang,
        *,
        now: Callable[[], datetime],
        telling: Telling,
    ) -> None:
        self._store = store
        self._gang = gang
        self._job_uid = settings.job_uid
        self._now = now
        self._telling = telling
        given = Round(settings.attempt, settings.round) if settings.is_in_job else None
        self._membership = Membership(store, given, settings.job_uid, now)

    @property
    def uri(self) -> str:
        """The prefix of all of them."""
        return self._store.uri

    def uri_of(self, manifest: Manifest) -> str:
        """Where the parts of *manifest* are."""
        return f"{self._store.uri}/{manifest.location.directory}"

    def save(
        self,
        step: int,
        *,
        shared: Mapping[str, Any],
        per_rank: Mapping[str, Any],
        progress: Mapping[str, Any],
    ) -> Saved:
        """Save, all ranks together; *shared* is written by rank 0 alone."""
        began = time.monotonic()
        ranks = self._gang.ranks()
        parts: dict[str, Mapping[str, Any]] = {}

        def collect() -> None:
            parts[own_part(ranks.rank)] = {_STATE: _states(per_rank), _PROGRESS: progress}
            if ranks.rank == 0:
                parts[SHARED] = {_STATE: _states(shared), _PER_RANK: sorted(per_rank)}

        all_do(ranks, collect, SaveFailed)
        saver = Saver(self._store, ranks, self._membership, self._job_uid, self._now, self._tell)
        suffix = trees.suffix()
        manifest = saver.save(step, {f"{stem}{suffix}": tree for stem, tree in parts.items()})
        return Saved(
            id=manifest.id,
            step=step,
            uri=self.uri_of(manifest),
            bytes=manifest.bytes,
            seconds=time.monotonic() - began,
        )

    def load(self) -> Loaded | None:
        """The newest verified checkpoint, all ranks the same; None for a fresh start."""
        ranks = self._gang.ranks()
        restorer = Restorer(self._store, ranks, self._membership, self._job_uid)
        manifest = restorer.choose()
        if manifest is None:
            return None
        shared, own = restorer.load(manifest)
        alone = shared[_PER_RANK]
        if alone and manifest.world_size != ranks.size:
            raise RestoreFailed(
                f"{self.uri_of(manifest)} holds {', '.join(alone)} of each of "
                f"{manifest.world_size} ranks, this gang has {ranks.size}"
            )
        state = {**shared[_STATE], **own.get(_STATE, {})}
        # All ranks have to go on at the same place, also those that wrote none.
        first = ranks.from_first({**own.get(_PROGRESS, {}), "rng": None})
        return Loaded(manifest, state, self._own_progress(own, first), frozenset(alone))

    def _own_progress(self, own: Mapping[str, Any], first: Mapping[str, Any]) -> Mapping[str, Any]:
        if _PROGRESS in own:
            found: Mapping[str, Any] = own[_PROGRESS]
            return found
        log.warning("this rank is new, its generators start anew: rank=%d", self._gang.rank)
        return {name: value for name, value in first.items() if name != "rng"}

    def _tell(self, state: CheckpointState, manifest: Manifest) -> None:
        uri = self.uri_of(manifest)
        self._telling.saved(state, manifest, uri)
        log.info("checkpoint %s: uri=%s bytes=%d", state, uri, manifest.bytes)


def _states(objects: Mapping[str, Any]) -> dict[str, Any]:
    return {name: trees.state_of(name, value) for name, value in objects.items()}
