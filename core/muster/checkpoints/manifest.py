"""The manifest: the one object whose presence makes parts a checkpoint."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from muster.checkpoints.documents import parsed, rendered
from muster.checkpoints.naming import Location, Round, is_part_name, rank_of
from muster.errors import InvalidSpec
from muster.fields import Fields

FORMAT: Final = "muster.dev/checkpoint/v1"
PARTS_MAX: Final = 1_000_000
_FIELDS: Final = frozenset(
    {"format", "id", "step", "attempt", "round", "world_size", "job_uid", "created", "parts"}
)
_SHA256_DIGITS: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Part:
    """One object of a checkpoint, as it was when it was written."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A committed checkpoint."""

    location: Location
    world_size: int
    job_uid: str
    """Empty outside a job."""
    created: datetime
    parts: tuple[Part, ...]

    @property
    def id(self) -> str:
        """`step-100`."""
        return self.location.id

    @property
    def step(self) -> int:
        """Steps done when it was saved."""
        return self.location.step

    @property
    def bytes(self) -> int:
        """The size of all parts."""
        return sum(part.size for part in self.parts)


def raw_of_manifest(manifest: Manifest) -> bytes:
    """The manifest as a store keeps it."""
    return rendered(
        {
            "format": FORMAT,
            "id": manifest.id,
            "step": manifest.step,
            "attempt": manifest.location.round.attempt,
            "round": manifest.location.round.round,
            "world_size": manifest.world_size,
            "job_uid": manifest.job_uid,
            "created": manifest.created.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "parts": [
                {"name": part.name, "size": part.size, "sha256": part.sha256}
                for part in manifest.parts
            ],
        }
    )


def manifest_of(text: bytes, location: Location) -> Manifest:
    """The manifest found at *location*, or `InvalidSpec` with what is wrong in it."""
    fields = Fields(parsed(text), "")
    fields.only(_FIELDS)
    fields.word("format", (FORMAT,))
    fields.word("id", (location.id,))
    written = Location(fields.whole("step"), Round(fields.whole("attempt"), fields.whole("round")))
    if written != location:
        raise InvalidSpec("", f"speaks of {written.directory}, not of {location.directory}")
    world_size = fields.whole("world_size", least=1)
    return Manifest(
        location=location,
        world_size=world_size,
        job_uid=fields.text("job_uid", default=""),
        created=fields.moment("created"),
        parts=_parts_of(fields, world_size),
    )


def _parts_of(fields: Fields, world_size: int) -> tuple[Part, ...]:
    listed = fields.listed("parts", most=PARTS_MAX)
    parts = tuple(_part_of(raw, f"parts[{index}]") for index, raw in enumerate(listed))
    if len({part.name for part in parts}) != len(parts):
        raise InvalidSpec("parts", "names a part twice")
    ranks = {rank for part in parts if (rank := rank_of(part.name)) is not None}
    if ranks != set(range(world_size)):
        # A save in which a rank had no part of its own was never whole (case T5).
        raise InvalidSpec("parts", f"must hold a part of each of {world_size} ranks and no others")
    return parts


def _part_of(raw: object, path: str) -> Part:
    fields = Fields(raw, path)
    fields.only({"name", "size", "sha256"})
    name = fields.text("name")
    if not is_part_name(name):
        raise InvalidSpec(fields.path("name"), f"is no name of a part: {name!r}")
    digest = fields.text("sha256")
    if len(digest) != 64 or not _SHA256_DIGITS.issuperset(digest):
        raise InvalidSpec(fields.path("sha256"), "must be 64 hexadecimal digits")
    return Part(name, fields.whole("size"), digest)
