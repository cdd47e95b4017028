"""Finding the checkpoint to resume from, and reading it, by all ranks together."""

import logging
from dataclasses import dataclass
from typing import Any, Final

from muster.checkpoints import Choice, Manifest, newest_verified
from muster_sdk.agreement import all_do, first_decides
from muster_sdk.errors import RestoreFailed
from muster_sdk.membership import Membership
from muster_sdk.parts import fault_of, read_part
from muster_sdk.ranks import Ranks
from muster_sdk.stores import Store

log = logging.getLogger(__name__)

SHARED: Final = "replicated"
"""The part that holds what is the same on every rank."""


def own_part(rank: int) -> str:
    """The part that a rank writes for itself, without its suffix."""
    return f"part-{rank}"


@dataclass(frozen=True, slots=True)
class Restorer:
    """Reads from one store, for one gang."""

    store: Store
    ranks: Ranks
    membership: Membership
    job_uid: str

    def choose(self) -> Manifest | None:
        """The checkpoint that every rank resumes from; None for a fresh start."""
        choice = first_decides(self.ranks, self._decide, RestoreFailed)
        return choice.manifest

    def load(self, manifest: Manifest) -> tuple[dict[str, Any], dict[str, Any]]:
        """What all ranks share in *manifest*, and what this rank saved for itself.

        The latter is empty where the gang has grown since and this rank wrote nothing then.
        """
        loaded: list[tuple[dict[str, Any], dict[str, Any]]] = []
        # Kept here and not handed to `all_do`, which sends results to all ranks.
        all_do(self.ranks, lambda: loaded.append(self._read(manifest)), RestoreFailed)
        return loaded[0]

    def _decide(self) -> Choice:
        listing = self.membership.listing()
        choice = newest_verified(
            listing,
            self.membership.round(listing.sizes),
            lambda manifest: fault_of(self.store, manifest.location, manifest.parts),
            job_uid=self.job_uid,
        )
        for skipped in choice.skipped:
            log.warning("checkpoint passed over: uri=%s reason=%s", self.store.uri, skipped)
        if choice.is_exhausted:
            reasons = "; ".join(str(skipped) for skipped in choice.skipped)
            raise RestoreFailed(
                f"no checkpoint at {self.store.uri} can be used, and starting anew would lose "
                f"what they hold ({reasons}); mend or remove them"
            )
        origin = choice.manifest.location if choice.manifest else None
        self.membership.enter(listing.sizes, resumes_from=origin)
        return choice

    def _read(self, manifest: Manifest) -> tuple[dict[str, Any], dict[str, Any]]:
        shared: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for part in manifest.parts:
            stem = part.name.rpartition(".")[0]
            if stem == SHARED:
                shared = read_part(self.store, manifest.location, part.name)
            elif stem == own_part(self.ranks.rank):
                own = read_part(self.store, manifest.location, part.name)
        return shared, own
