"""What a store held at one moment, as far as it concerns checkpoints."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.checkpoints.manifest import Manifest, manifest_of
from muster.checkpoints.naming import (
    Location,
    Round,
    location_of,
    location_of_part,
    round_of,
)
from muster.checkpoints.rounds import RoundStart, round_start_of
from muster.errors import InvalidSpec


def documents_in(names: Iterable[str]) -> tuple[str, ...]:
    """The names among *names* whose contents a `Listing` needs: manifests and starts of rounds."""
    return tuple(sorted(name for name in names if location_of(name) or round_of(name)))


@dataclass(frozen=True, slots=True)
class Listing:
    """The sizes of all objects, and the contents of those that `documents_in` names.

    Names are relative to the job's prefix; names that are not ours are ignored by every method.
    """

    sizes: Mapping[str, int]
    contents: Mapping[str, bytes]

    def rounds(self) -> tuple[Mapping[Round, RoundStart], Mapping[Round, str]]:
        """The rounds that have started, and those whose start cannot be read, with the reason."""
        starts: dict[Round, RoundStart] = {}
        unreadable: dict[Round, str] = {}
        for name in sorted(self.sizes):
            if known := round_of(name):
                try:
                    starts[known] = round_start_of(self.contents[name], known)
                except InvalidSpec as error:
                    unreadable[known] = f"{name}: {error}"
        return starts, unreadable

    def committed(self) -> tuple[Location, ...]:
        """Every location with a manifest, readable or not."""
        return tuple(sorted(found for name in self.sizes if (found := location_of(name))))

    def unsettled(self) -> tuple[Location, ...]:
        """Every location with parts and no manifest: a save under way, or one that never ended."""
        started = {found for name in self.sizes if (found := location_of_part(name))}
        return tuple(sorted(started.difference(self.committed())))

    def manifest(self, location: Location, job_uid: str) -> Manifest | str:
        """The manifest at *location* with all its parts there in full size, or why not."""
        try:
            manifest = manifest_of(self.contents[location.manifest], location)
        except InvalidSpec as error:
            return f"its manifest cannot be read: {error}"
        if manifest.job_uid != job_uid:
            return f"it belongs to another job (uid {manifest.job_uid or 'none'})"
        for part in manifest.parts:
            size = self.sizes.get(location.part(part.name))
            if size is None:
                return f"{part.name} is missing"
            if size != part.size:
                return f"{part.name} has {size} bytes instead of {part.size}"
        return manifest
