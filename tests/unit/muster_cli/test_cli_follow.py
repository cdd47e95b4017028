import io

import pytest
from rich.console import Console

from muster.errors import NotFound, Unavailable
from muster_cli import follow

JOB = {"namespace": "n", "name": "digits", "replicas": 2, "gpus": 8, "attempt": 1}
EPOCH = {
    "epoch": 0,
    "finished": "2026-01-01T00:00:00Z",
    "seconds": 4.0,
    "gpu_seconds": 32.0,
    "micro_usd": 34_900,
    "metrics": {"accuracy": 0.93, "loss": "NaN"},
}


class Script:
    """Plays a list of answers; an exception in it is raised."""

    def __init__(self, *jobs, epochs=()):
        self._jobs = list(jobs)
        self._epochs = list(epochs)

    def job(self, namespace, name):
        answer = self._jobs.pop(0) if len(self._jobs) > 1 else self._jobs[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def epochs(self, namespace, name):
        return {"items": self._epochs}


def phases(script, **options):
    found = follow.states(script, "n", "digits", pause=lambda _: None, **options)
    return [state.phase for state in found]


def test_a_job_is_followed_to_its_end():
    script = Script(*(JOB | {"phase": p} for p in ("Pending", "Running", "Succeeded")))

    assert ["Pending", "Running", "Succeeded"] == phases(script)


def test_an_api_that_is_away_for_a_moment_is_waited_for():
    script = Script(Unavailable("starting"), Unavailable("starting"), JOB | {"phase": "Failed"})

    assert ["Failed"] == phases(script)


def test_one_that_stays_away_is_told():
    with pytest.raises(Unavailable, match="gone"):
        phases(Script(Unavailable("gone")))


def test_an_earlier_job_of_the_same_name_is_not_taken_for_this_one():
    script = Script(
        JOB | {"uid": "old", "phase": "Succeeded"},
        NotFound("between the two"),
        JOB | {"uid": "new", "phase": "Failed"},
    )

    assert ["Pending", "Pending", "Failed"] == phases(script, uid="new")


def test_an_unknown_job_is_not_waited_for():
    with pytest.raises(NotFound, match="no such"):
        phases(Script(NotFound("no such")))


def console(**options):
    return Console(file=io.StringIO(), width=100, highlight=False, **options)


def test_without_a_terminal_each_thing_that_happens_is_one_line():
    lines = console()
    running = JOB | {"phase": "Running", "reason": "Running", "message": "all run"}
    saved = running | {"checkpoint": {"verified": "step-66", "step": 66}}

    with follow.display(lines) as display:
        display.show(follow.State(running))
        display.show(follow.State(saved, (EPOCH,)))
        display.say("a replica was killed")
        display.show(follow.State(saved, (EPOCH, {"epoch": 1, "finished": None})))

    assert [
        "digits: Running, attempt 1, 2 replicas, 8 GPUs (Running: all run)",
        "checkpoint step-66 verified, step 66",
        "epoch 0: 4.0s, 32.0 GPU-seconds, $0.034900, accuracy 0.93",
        "a replica was killed",
    ] == lines.file.getvalue().splitlines()


def test_on_a_terminal_a_page_changes_in_place():
    terminal = console(force_terminal=True, color_system=None)

    with follow.display(terminal, epochs=8) as display:
        display.show(follow.State(JOB | {"phase": "Running"}, (EPOCH,)))
        display.say("a replica was killed")

    shown = terminal.file.getvalue()
    for said in ("n/digits", "Running", "1 of 8", "epoch 0", "accuracy 0.93", "was killed"):
        assert said in shown
