"""The commit protocol, as the ranks of a gang carry it out together.

Each rank writes its parts; when all have, rank 0 creates the manifest; each rank reads its parts
back. Any rank's failure is everybody's: the parts are removed, and earlier checkpoints stand.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muster.checkpoints import Location, Manifest, Part, raw_of_manifest
from muster.reports import CheckpointState
from muster_sdk.agreement import all_do, first_decides
from muster_sdk.errors import SaveFailed
from muster_sdk.membership import Membership
from muster_sdk.parts import fault_of, write_part
from muster_sdk.ranks import Ranks
from muster_sdk.stores import Store
from muster_sdk.trees import unsafe_types

log = logging.getLogger(__name__)

Told = Callable[[CheckpointState, Manifest], None]


@dataclass(frozen=True, slots=True)
class Saver:
    """Saves to one store, for one gang."""

    store: Store
    ranks: Ranks
    membership: Membership
    job_uid: str
    now: Callable[[], datetime]
    told: Told
    """Hears on rank 0 which state a checkpoint has reached."""

    def save(self, step: int, trees: Mapping[str, Any]) -> Manifest:
        """Save *trees*, this rank's parts by name, as the checkpoint of *step*."""
        self._refuse_if_steps_differ(step)
        location, existing = first_decides(self.ranks, lambda: self._open(step), SaveFailed)
        if existing is not None:
            if self.ranks.rank == 0:
                self.told(CheckpointState.VERIFIED, existing)  # Whoever asked waits for it.
            return existing
        mine = list(map(location.part, trees))
        try:
            parts = all_do(self.ranks, lambda: self._write(location, trees), SaveFailed)
            manifest = first_decides(self.ranks, lambda: self._commit(location, parts), SaveFailed)
            if self.ranks.rank == 0:
                mine.insert(0, location.manifest)  # First, so that no hollow one is ever left.
            written = parts[self.ranks.rank]
            all_do(self.ranks, lambda: self._read_back(location, written), SaveFailed)
        except BaseException:
            self._remove(mine)
            raise
        if self.ranks.rank == 0:
            self.told(CheckpointState.VERIFIED, manifest)
        return manifest

    def _refuse_if_steps_differ(self, step: int) -> None:
        steps = self.ranks.gather(step)
        if len(set(steps)) > 1:
            named = ", ".join(f"rank {rank} {theirs}" for rank, theirs in enumerate(steps))
            raise SaveFailed(f"the ranks save different steps: {named}")

    def _open(self, step: int) -> tuple[Location, Manifest | None]:
        """Where to save, and what this round has saved there before, if that is sound."""
        sizes = self.membership.sizes()
        # A script that has not restored starts anew, and its round says so.
        location = Location(step, self.membership.enter(sizes, resumes_from=None))
        if location.manifest not in sizes:
            return location, None
        manifest = self.membership.listing().manifest(location, self.job_uid)
        if isinstance(manifest, Manifest) and not fault_of(self.store, location, manifest.parts):
            return location, manifest
        log.warning("checkpoint is broken and saved anew: uri=%s", self._uri(location))
        self.store.remove([location.manifest])
        return location, None

    def _write(self, location: Location, trees: Mapping[str, Any]) -> tuple[Part, ...]:
        parts = tuple(write_part(self.store, location, *each) for each in trees.items())
        for part in parts:
            with self.store.reading(location.part(part.name)) as file:
                unsafe = unsafe_types(file, part.name)
            if unsafe:
                raise SaveFailed(
                    f"{part.name} holds what is never loaded ({', '.join(unsafe)}); save its "
                    "state_dict(), or plain values and tensors"
                )
        return parts

    def _commit(self, location: Location, parts: list[tuple[Part, ...]]) -> Manifest:
        named = tuple(part for theirs in parts for part in theirs)
        manifest = Manifest(location, self.ranks.size, self.job_uid, self.now(), named)
        sizes = self.membership.sizes()
        for part in named:
            if sizes.get(location.part(part.name)) != part.size:
                raise SaveFailed(
                    f"rank 0 cannot see {part.name} in {self._uri(location)}: do all nodes share "
                    "this store?"
                )
        self.store.create(location.manifest, raw_of_manifest(manifest))
        self.told(CheckpointState.DURABLE, manifest)
        return manifest

    def _read_back(self, location: Location, parts: tuple[Part, ...]) -> None:
        fault = fault_of(self.store, location, parts)
        if fault is not None:
            raise SaveFailed(f"{self._uri(location)} does not read back: {fault}")

    def _remove(self, names: list[str]) -> None:
        """Take back what this rank has written."""
        try:
            self.store.remove(names)
        except Exception as error:  # The save's own failure is what has to be told.
            log.warning(
                "parts not removed: uri=%s names=%s reason=%r", self.store.uri, names, error
            )

    def _uri(self, location: Location) -> str:
        return f"{self.store.uri}/{location.directory}"
