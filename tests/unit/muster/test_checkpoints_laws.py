"""Which checkpoint is chosen, whatever was left behind."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_stores import at, began, listing, locations, saved, sound, with_body, without
from muster.checkpoints import (
    Location,
    Manifest,
    Round,
    newest_verified,
)


@settings(deadline=None)
@given(st.dictionaries(locations, st.sampled_from(["whole", "hash", "size", "staging"])))
def test_whatever_was_left_behind_only_a_sound_checkpoint_is_chosen(
    states: dict[Location, str],
) -> None:
    objects = [began(attempt, round_) for attempt in range(1, 5) for round_ in (0, 1)]
    for location, state in states.items():
        whole = saved(location)
        cut = {
            "staging": without(whole, "manifest.json"),
            "size": with_body(whole, "part-1.pt", b""),
        }
        objects.append(cut.get(state, whole))

    def fault(found: Manifest) -> str | None:
        return "another hash" if states[found.location] == "hash" else None

    choice = newest_verified(listing(*objects), Round(9, 0), fault, job_uid="uid")

    if choice.manifest is not None:
        assert "whole" == states[choice.manifest.location]
        assert Round(4, 1) == choice.manifest.location.round
        passed = {each.name for each in choice.skipped}
        newer = {found.directory for found in states if found > choice.manifest.location}
        assert newer <= passed


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=8))
def test_what_a_cut_off_attempt_still_writes_is_never_resumed_from(
    story: list[tuple[int, bool]],
) -> None:
    # Each entry: steps that the living attempt makes and saves; whether the one before it,
    # cut off, saves something far ahead meanwhile.
    objects: list[Mapping[str, bytes]] = [began(1)]
    last: Location | None = None
    step, attempt = 0, 1
    for steps, has_zombie in story:
        step += steps
        last = at(step, attempt)
        objects.append(saved(last))
        attempt += 1
        objects.append(began(attempt, origin=last))
        if has_zombie:
            objects.append(saved(at(step + 1000, attempt - 1)))

    choice = newest_verified(listing(*objects), Round(attempt, 0), sound, job_uid="uid")

    assert last == (choice.manifest and choice.manifest.location)
