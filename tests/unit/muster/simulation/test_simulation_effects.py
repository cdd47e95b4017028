"""What a deed makes of a gang, as values."""

from dataclasses import replace

from muster.scheduling.snapshot import NOWHERE, Displaced, Gang, Leaving, Needs, Run
from muster.simulation import effects

GANG = Gang("g", 4, 2, Needs(1), 0.0)
RUNNING = replace(GANG, placement=("a", "b", "c", "d"), run=Run(10.0))


def test_a_start_settles_what_was_open():
    waiting = replace(GANG, claim=("x",), is_returning=True, displaced=Displaced("h", 1.0))

    started = effects.started(waiting, ["a", "b"], 20.0, behind=("big",))

    assert started == replace(GANG, placement=("a", "b"), run=Run(20.0, behind=("big",)))


def test_whoever_leaves_waits_with_what_it_has_done():
    asked = replace(RUNNING, leaving=(Leaving("h"),), finished=(1,), claim=("x",))

    found = effects.waiting(
        asked, attained=40.0, ran=10.0, is_returning=True, displaced=Displaced("h", 3.0)
    )

    assert found == replace(
        GANG, attained=40.0, ran=10.0, is_returning=True, displaced=Displaced("h", 3.0)
    )


def test_growth_is_behind_the_last_rank():
    once = effects.grown(RUNNING, ["e"], behind=("big",))
    twice = effects.grown(once, ["f"], behind=("other", "big"))

    assert ("a", "b", "c", "d", "e", "f") == twice.placement
    assert twice.run is not None
    assert ("big", "other") == twice.run.grown_behind


def test_the_ranks_behind_a_cut_move_up_with_what_was_decided_about_them():
    asked = replace(
        RUNNING,
        finished=(0,),
        leaving=(Leaving("h", (1, 3), 5.0), Leaving("i", (1,), 5.0), Leaving("", None, 6.0)),
    )

    found = effects.cut(asked, (1,))

    assert ("a", "c", "d") == found.placement
    assert (0,) == found.finished
    assert (Leaving("h", (2,), 5.0), Leaving("", None, 6.0)) == found.leaving


def test_the_time_of_a_loss_is_that_of_the_first():
    first = effects.lost(RUNNING, (1,), 50.0)
    second = effects.lost(first, (3,), 60.0)

    assert ("a", NOWHERE, "c", NOWHERE) == second.placement
    assert second.run is not None
    assert 50.0 == second.run.lost_at


def test_a_loss_is_over_when_nothing_is_lost():
    broken = effects.lost(RUNNING, (1, 3), 50.0)
    half = effects.replaced(broken, [3], ["x"])
    whole = effects.replaced(half, [1], ["y"])
    smaller = effects.cut(half, (1,))

    assert [50.0, None, None] == [each.run and each.run.lost_at for each in (half, whole, smaller)]
    assert ("a", "y", "c", "x") == whole.placement


def test_what_is_lost_need_not_be_asked():
    asked = replace(RUNNING, leaving=(Leaving("", (1, 2)), Leaving("h", (1,)), Leaving("i")))

    assert (Leaving("", (2,)), Leaving("i")) == effects.lost(asked, (1,), 50.0).leaving


def test_a_finished_rank_holds_nothing_and_is_not_lost():
    found = effects.finished(RUNNING, 2)

    assert (("a", "b", NOWHERE, "d"), (2,), ()) == (found.placement, found.finished, found.lost)


def test_decisions_are_called_off_by_their_kind():
    asked = replace(
        RUNNING,
        leaving=(Leaving("h"), Leaving("", (1, 2)), Leaving("", None), Leaving("i", (3,))),
    )

    assert ["", "", "i"] == [e.claimant for e in effects.released(asked, "h").leaving]
    assert [None, (1, 2), (3,)] == [e.ranks for e in effects.unsuspended(asked).leaving]
    assert [None, (2,), None, (3,)] == [e.ranks for e in effects.undrained(asked, (1,)).leaving]
    assert 3 == len(effects.undrained(asked, (1, 2)).leaving)


def test_a_gang_of_which_nothing_is_known_began_at_the_epoch():
    assert Run(0.0) == effects.run_of(replace(RUNNING, run=None))
