"""What holds for every decision about every cluster, on thousands of random ones.

Each history is told with a witness that holds every decision against the rules at the moment at
which it is carried out: see `witnesses`.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from books import seats_now
from driving import Drive
from feasible import fits
from histories import Story, happen, histories
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import WaitReason
from random_clusters import tried
from random_worlds import Mix, World, worlds
from witnesses import is_free_to_start, standing_of


@tried(250)
@given(histories())
def test_whatever_happens_every_decision_is_lawful_and_decisions_end(history):
    Story(history).tell(history.events)


@tried(200)
@given(histories(Mix(nodes=3, gangs=7, has_topology=False, has_resources=False), events=8))
def test_the_same_where_many_compete_for_little(history):
    Story(history).tell(history.events)


@tried(100)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_plays_no_part(world, random):
    def shuffled(values):
        return tuple(random.sample(values, len(values)))

    other = replace(
        world,
        nodes=shuffled(world.nodes),
        queues=shuffled(world.queues),
        gangs=shuffled(world.gangs),
    )

    assert Drive(world).plan() == Drive(other).plan()


@tried(100)
@given(histories(events=3))
def test_the_same_cluster_gives_the_same_plan_however_it_came_about(history):
    drive = Drive(history.world)
    spare = list(history.spare)
    for event in history.events:
        happen(drive, event, spare, drive.settle)
    drive.cluster.advance(drive.now, drive.policy.usage_half_life)
    told = drive.cluster.copy()

    assert () == drive.cluster.audit()
    assert drive.plan() == plan_cycle(told.snapshot(), drive.policy, drive.now)


@tried(100)
@given(histories(events=3))
def test_once_settled_many_more_passes_change_nothing(history):
    story = Story(history)
    story.tell(history.events)
    settled = story.drive.plan()
    for _ in range(5):
        assert settled == story.drive.plan()
    # Told anew, nothing is remembered from one pass to the next.
    fresh = story.drive.cluster.copy()

    assert () == settled.deeds
    assert settled == plan_cycle(fresh.snapshot(), story.drive.policy, story.drive.now)


@tried(3)
@given(histories(events=4))
def test_a_thousand_passes_change_nothing(history):
    story = Story(history)
    story.tell(history.events)
    settled = story.drive.plan()

    assert all(settled == story.drive.plan() for _ in range(1000))


@tried(150)
@given(histories(events=3))
def test_without_reservations_nobody_waits_who_fits_what_is_idle(history):
    policy = replace(history.world.policy, reservation=False)
    world = replace(history.world, policy=policy)
    Story(replace(history, world=world), each=check_that_nobody_fits).tell(history.events)


def check_that_nobody_fits(drive: Drive) -> None:
    books = standing_of(drive).books()
    for gang in drive.gangs.values():
        if gang.is_pending and not gang.claim and is_free_to_start(drive, gang):
            assert not fits(gang, books), f"{gang.key} fits"


@tried(150)
@given(worlds())
def test_never_fits_is_said_of_exactly_those_that_an_empty_cluster_does_not_hold(world):
    nodes = tuple(replace(n, is_ready=True, is_cordoned=False) for n in world.nodes)
    queues = tuple(replace(queue, is_paused=False) for queue in world.queues)
    for wait in Drive(world).settle().waiting:
        (gang,) = (gang for gang in world.gangs if gang.key == wait.gang)
        alone = replace(gang, placement=None, run=None)
        empty = World(nodes, queues, (alone,))
        starts = fits(alone, standing_of(Drive(empty)).books())
        if wait.reason in {WaitReason.NO_MATCHING_NODES, WaitReason.NEVER_FITS}:
            assert not starts
        elif wait.reason not in {WaitReason.SUSPENDED, WaitReason.DEPENDENCY}:
            assert starts


@tried(100)
@given(histories(Mix(has_notice=True), events=3))
def test_whoever_evicts_starts(history):
    story = Story(history)
    story.tell(history.events)
    drive = story.drive
    # Nothing changes from outside any more, and everybody leaves in time.
    asked = {key for key, at in story.witness.beneficiaries.items() if at == drive.changed}
    if not any(gang.lost for gang in drive.gangs.values()):
        drive.pass_until(drive.now + 2 * drive.policy.notice, story.settle)

        assert not asked & {
            key
            for key, at in story.witness.beneficiaries.items()
            if at == drive.changed and not seats_now(drive.gangs[key])
        }
