"""What may happen to a cluster, as short scripts that hypothesis can shrink.

An event names what it is about by a number, which is taken modulo what there is, so that every
script fits every world.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from books import seats_now
from driving import MOST_PASSES, Drive
from entitlements import attained, level
from muster.scheduling.plan import Admit, Grow, Plan, Preempt, Replace, Withdraw
from muster.scheduling.snapshot import Gang, Needs
from random_worlds import Dice, Mix, World, gang_of, rolls, world_of
from witnesses import Witness, check_rights

KINDS = (
    "pass",
    "pass",
    "end",
    "submit",
    "submit",
    "finish a rank",
    "down",
    "up",
    "up",
    "drain",
    "limit",
    "pause",
    "suspend",
    "cancel",
    "a GPU breaks",
    "others come",
)
ODDITIES = (*KINDS, "a node is removed", "a queue is removed")
"""What an administrator should not do while jobs are there; decisions go on all the same."""


@dataclass(frozen=True)
class Event:
    kind: str
    number: int
    interrupted_after: int | None = None
    """So many deeds of the next plan are carried out, and then it is planned again."""


@dataclass(frozen=True)
class History:
    world: World
    events: tuple[Event, ...]
    spare: tuple[Gang, ...]
    """Jobs that are submitted in the course of it."""


def histories(
    mix: Mix | None = None, *, events: int = 6, kinds: tuple[str, ...] = KINDS
) -> st.SearchStrategy[History]:
    """Worlds with what happens to them."""

    def history(dice: Dice) -> History:
        script = tuple(
            Event(dice.pick(*kinds), dice.pick(*range(10)), dice.pick(None, None, 0, 1, 2, 3))
            for _ in range(dice.pick(*range(events + 1)))
        )
        submitted = sum(event.kind == "submit" for event in script)
        spare = tuple(gang_of(dice, f"s{number}", mix or Mix()) for number in range(submitted))
        return History(world_of(dice, mix or Mix()), script, spare)

    return rolls(300 + 45 * (mix or Mix()).gangs).map(history)


class Story:
    """A history as it is told: every decision is witnessed, and every instant settles."""

    def __init__(
        self,
        history: History,
        *,
        is_minimal: bool = True,
        each: Callable[[Drive], None] | None = None,
    ) -> None:
        self.witness = Witness()
        self._is_minimal = is_minimal
        self.drive = Drive(history.world, self.witness)
        self._spare = list(history.spare)
        self._seen: dict[object, int] = {}
        self._since = self.drive.changed
        self._each = each

    def tell(self, events: tuple[Event, ...]) -> None:
        self.settle()
        for event in events:
            happen(self.drive, event, self._spare, self.settle)
            if event.interrupted_after is not None:
                self._carry_out_some(event.interrupted_after)
            self.settle()

    def settle(self) -> Plan:
        """Decisions end; in each plan whoever evicts at once starts at once; nothing returns."""
        for _ in range(MOST_PASSES):
            plan = self.drive.plan()
            check_everybody_is_told(self.drive, plan)
            if not plan.deeds:
                if self._each:
                    self._each(self.drive)
                return plan
            check_rights(self.drive, plan, is_minimal=self._is_minimal)
            if self.drive.policy.leaves_at_once:
                check_beneficiaries_start(plan)
            self.drive.carry_out(plan.deeds)
            self._check_nothing_returns()
        raise AssertionError(f"decisions go on for ever: {plan.deeds}")

    def _carry_out_some(self, number: int) -> None:
        plan = self.drive.plan()
        check_rights(self.drive, plan, is_minimal=self._is_minimal)
        self.drive.carry_out(plan.deeds[:number])
        self._check_nothing_returns()

    def _check_nothing_returns(self) -> None:
        drive = self.drive
        if drive.changed != self._since:
            self._since = drive.changed
            self._seen.clear()
        state = tuple(
            (gang.key, gang.placement, level(attained(gang, drive.now)))
            for gang in sorted(drive.gangs.values(), key=lambda gang: gang.key)
        )
        evictions = drive.evictions.total()
        assert self._seen.setdefault(state, evictions) == evictions, "evicted in a circle"


def check_everybody_is_told(drive: Drive, plan: Plan) -> None:
    """Each pending gang starts, or is told once why it waits."""
    waits = [wait.gang for wait in plan.waiting]
    starts = [admit.gang for admit in plan.admitted]
    pending = {gang.key for gang in drive.gangs.values() if gang.is_pending}
    assert len(set(starts)) == len(starts)
    assert pending <= {*waits, *starts}
    assert len(set(waits)) == len(waits)
    assert not {*waits} & {*starts}


def check_beneficiaries_start(plan: Plan) -> None:
    waiting: list[str] = []
    for deed in plan.deeds:
        if isinstance(deed, Preempt):
            waiting.append(deed.gang)
        elif isinstance(deed, Admit | Grow | Replace) and deed.gang in waiting:
            waiting.remove(deed.gang)
        elif isinstance(deed, Withdraw):
            assert deed.gang not in waiting
    assert [] == waiting


def happen(drive: Drive, event: Event, spare: list[Gang], settle: Callable[[], object]) -> None:
    """Let one thing happen; time passes with everything that is due in it."""
    placed = sorted(gang.key for gang in drive.gangs.values() if seats_now(gang))
    every = sorted(drive.gangs)
    nodes = sorted(drive.nodes)
    queues = sorted(drive.queues)
    number = event.number
    match event.kind:
        case "pass":
            drive.pass_until(drive.now + (5, 31, 100, 1000, 9000)[number % 5], settle)
        case "submit" if spare:
            drive.submit(spare.pop())
        case "end" if placed:
            drive.end(placed[number % len(placed)])
        case "finish a rank" if placed:
            gang = drive.gangs[placed[number % len(placed)]]
            ranks = [rank for rank, node in enumerate(gang.placement or ()) if node]
            if len(ranks) > 1:
                drive.finish_rank(gang.key, ranks[0])
        case "down" | "up" | "drain" if nodes:
            node = drive.nodes[nodes[number % len(nodes)]]
            is_drained = event.kind == "drain"
            drive.change_node(
                replace(
                    node,
                    is_ready=event.kind != "down",
                    is_cordoned=is_drained,
                    is_draining=is_drained,
                )
            )
        case "limit" if queues:
            queue = drive.queues[queues[number % len(queues)]]
            drive.change_queue(replace(queue, limit=number))
        case "pause" if queues:
            queue = drive.queues[queues[number % len(queues)]]
            drive.change_queue(replace(queue, is_paused=not queue.is_paused))
        case "cancel" if every:
            drive.end(every[number % len(every)])
        case "a GPU breaks" if nodes:
            node = drive.nodes[nodes[number % len(nodes)]]
            if node.gpus:
                drive.change_node(replace(node, gpus=node.gpus - 1, bad_gpus=node.bad_gpus + 1))
        case "others come" if nodes:
            drive.come("p2", nodes[number % len(nodes)], Needs(1, 1))
        case "a node is removed" if nodes:
            drive.remove_node(nodes[number % len(nodes)])
        case "a queue is removed" if queues:
            drive.remove_queue(queues[number % len(queues)])
        case "suspend" if every:
            gang = drive.gangs[every[number % len(every)]]
            drive.suspend(gang.key, is_suspended=not gang.is_suspended)
