"""What a checkpoint is, which ones count, and which one a gang resumes from: values and rules.

A store holds, below the job's own prefix:

    rounds/attempt-2-round-1.json               what the round resumes from; written first
    step-100/attempt-2-round-1/part-0.pt        one or more parts of each rank
    step-100/attempt-2-round-1/manifest.json    written last: this commits the save

The first and the last are created only if absent.

The manifest is the truth: a part that no manifest names does not exist, whatever a listing shows
(case T3). Every round has a directory of its own, so two attempts never mix in one checkpoint, and
what a partitioned old attempt still writes lies outside the ancestry of the rounds after it.

States: `staging` (parts without a manifest), `durable` (committed), `verified` (read back with the
size and hash that the manifest names). Only verified ones are resumed from.
"""

from muster.checkpoints.listing import Listing, documents_in
from muster.checkpoints.manifest import Manifest, Part, manifest_of, raw_of_manifest
from muster.checkpoints.naming import (
    Location,
    Round,
    location_of,
    location_of_part,
    newest_round,
    rank_of,
)
from muster.checkpoints.resume import Choice, Skipped, newest_verified
from muster.checkpoints.rounds import RoundStart, raw_of_round_start, round_start_of

__all__ = [
    "Choice",
    "Listing",
    "Location",
    "Manifest",
    "Part",
    "Round",
    "RoundStart",
    "Skipped",
    "documents_in",
    "location_of",
    "location_of_part",
    "manifest_of",
    "newest_round",
    "newest_verified",
    "rank_of",
    "raw_of_manifest",
    "raw_of_round_start",
    "round_start_of",
]
