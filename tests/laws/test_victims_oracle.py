"""Who is evicted, against trying all sets of victims on clusters that are small enough."""

from dataclasses import replace

from hypothesis import assume, given

from brute_force import MOST_SETS, cheapest, could_start, number_of_sets, rank_of
from driving import Drive
from feasible import fits
from histories import Story, histories
from muster.scheduling.plan import Preempt
from muster.scheduling.policy import Policy
from random_clusters import tried
from random_worlds import Dice, Mix, World, gang_of, rolls, world_of
from witnesses import is_free_to_start, standing_of

PLAIN = Mix(nodes=4, gangs=6, has_models=False, has_notice=False, has_half_life=False)
FREE = {"is_suspended": False, "held_back": "", "placement": None, "run": None}


def puzzle(dice: Dice) -> World:
    """A cluster on which all who could be placed run, and one gang that asks."""
    policy = Policy(reservation=False, leaves_at_once=True, restart_time=dice.pick(0.0, 120.0))
    claimant = replace(gang_of(dice, "claimant", PLAIN), **FREE)
    claimant = replace(claimant, priority=dice.pick(0, 1, 2, 3))
    world = world_of(dice, PLAIN)
    queues = tuple(replace(queue, is_paused=False) for queue in world.queues)
    gangs = tuple(gang for gang in world.gangs if gang.placement is not None)
    return replace(world, queues=queues, gangs=(*gangs, claimant), policy=policy)


puzzles = rolls().map(puzzle)


@tried(400)
@given(puzzles)
def test_the_victims_are_the_cheapest_of_all_sets_that_would_do(world):
    drive = Drive(world)
    standing, claimant = standing_of(drive), drive.gangs["claimant"]
    assume(number_of_sets(standing, claimant) <= MOST_SETS)
    plan = drive.plan()
    chosen = [d.victims for d in plan.deeds if isinstance(d, Preempt) and d.gang == "claimant"]

    if fits(claimant, standing.books()):
        assert [] == chosen
        assert "claimant" in {admit.gang for admit in plan.admitted}
        return
    want = cheapest(standing, claimant, world.policy.restart_time)
    assert (want is not None) == bool(chosen)
    for victims in chosen:
        restart = world.policy.restart_time
        assert rank_of(standing, want, restart) == rank_of(standing, victims, restart)


@tried(150)
@given(histories(PLAIN, events=3))
def test_nobody_waits_who_could_start_by_any_set_of_victims(history):
    world = replace(history.world, policy=replace(history.world.policy, reservation=False))
    Story(replace(history, world=world), each=check_that_nobody_could_start).tell(history.events)


def check_that_nobody_could_start(drive: Drive) -> None:
    standing = standing_of(drive)
    for gang in drive.gangs.values():
        others = [g for g in drive.gangs.values() if g.is_pending and g.queue == gang.queue]
        # Another of its queue that goes before it might take what it makes free.
        is_asked = [gang] == others and is_free_to_start(drive, gang)
        if is_asked and number_of_sets(standing, gang) <= MOST_SETS:
            assert could_start(standing, gang) is None, f"{gang.key} could start"
