"""Scenarios in a few words, for tests."""

from typing import Any

from muster.simulation.play import Play, play
from muster.simulation.reading import scenario_of

ONE_NODE = {"nodes": [{"name": "n1", "gpus": 8}]}
TWO_NODES = {"nodes": [{"count": 2, "prefix": "n", "gpus": 8}]}


def scenario(**parts: Any) -> dict[str, Any]:
    """The mapping of a scenario; a cluster of one node with 8 GPUs unless another is given."""
    return {"name": "test", "cluster": ONE_NODE} | parts


def played(**parts: Any) -> Play:
    """What comes out of it."""
    return play(scenario_of(scenario(**parts)))


def story(play: Play, *jobs: str) -> list[tuple[float, str, str]]:
    """When what happened to these jobs, or to all."""
    return [
        (event.at, event.job, event.kind.value)
        for event in play.timeline
        if not jobs or event.job in jobs
    ]
