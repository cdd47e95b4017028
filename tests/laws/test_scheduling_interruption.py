"""The carrying-out may stop after any step: what is planned then keeps every law, and ends."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from driving import Drive
from histories import Event, History, Story, histories
from muster.scheduling.plan import Preempt
from muster.scheduling.snapshot import Leaving
from random_clusters import tried
from random_worlds import Mix, worlds

COMPETING = Mix(nodes=4, gangs=8, has_resources=False)


@tried(100)
@given(worlds(COMPETING))
def test_stopped_after_any_deed_and_planned_again_the_laws_hold(world):
    number = len(Drive(world).plan().deeds)
    for done in range(number):
        story = Story(History(world, (), ()))
        story.drive.carry_out(story.drive.plan().deeds[:done])
        story.tell((Event("pass", 1),))


@tried(250)
@given(worlds(COMPETING), st.integers(0, 3), st.booleans())
def test_an_eviction_that_was_asked_for_in_part_only_is_finished_or_given_up(world, asked, claims):
    """The operator writes to one job after the other, and may die in between."""
    policy = replace(world.policy, leaves_at_once=False, notice=30.0)
    story = Story(History(replace(world, policy=policy), (), ()))
    drive = story.drive
    first = next((d for d in drive.plan().deeds if isinstance(d, Preempt)), None)
    if first is None:
        return
    for victim in first.victims[:asked]:
        gang = drive.gangs[victim.gang]
        leaving = Leaving(first.gang, victim.ranks, drive.now + 30.0)
        drive.put(replace(gang, leaving=(leaving,)))
    if claims:
        drive.put(replace(drive.gangs[first.gang], claim=first.nodes))
    story.tell((Event("pass", 2),))

    for gang in drive.gangs.values():
        assert () == tuple(x for x in gang.leaving if not drive.gangs[x.claimant].claim)


@tried(80)
@given(histories(Mix(has_notice=True), events=5))
def test_whoever_leaves_early_changes_nothing_but_the_time(history):
    """A victim whose checkpoint is committed goes before its time is over."""
    policy = replace(history.world.policy, leaves_at_once=False, notice=30.0)
    story = Story(replace(history, world=replace(history.world, policy=policy)))
    for event in history.events:
        story.tell((event,))
        leaving = [
            (key, leaving)
            for key, gang in sorted(story.drive.gangs.items())
            for leaving in gang.leaving
        ]
        if leaving:
            key, early = leaving[event.number % len(leaving)]
            story.drive.leave_early(key, early)
            story.settle()
