"""A component on its way up."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from muster_local.component import Command, Component, Identity, stop
from muster_local.crew import Crew
from muster_local.launch import Failed, Launch, Recipe
from muster_local.ports import LOOPBACK, free_ports, is_free
from muster_local.probes import answers


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def server(port: int) -> Command:
    argv = (sys.executable, "-m", "http.server", "--bind", LOOPBACK, str(port))
    return Command("server", "test", argv, url=f"http://{LOOPBACK}:{port}")


def is_ready(component: Component) -> bool:
    return answers(component.url or "", "/")


def earlier(port: int) -> Component:
    """What is known of one that ran before and is gone."""
    url = f"http://{LOOPBACK}:{port}"
    return Component("server", "test", Identity(0, 0.0, "another boot"), Path("log"), url)


def take(port: int, held: ExitStack) -> None:
    taken = held.enter_context(socket.socket())
    taken.bind((LOOPBACK, port))
    taken.listen()


def test_a_port_taken_between_choice_and_bind_is_chosen_again(
    tmp_path: Path, held: ExitStack
) -> None:
    chosen: list[int] = []

    def command(port: int) -> Command:
        chosen.append(port)
        if len(chosen) == 1:
            take(port, held)
        return server(port)

    component = Launch(Recipe(command, is_ready), tmp_path).wait()
    held.callback(stop, [component])

    assert 2 == len(set(chosen))
    assert f"http://{LOOPBACK}:{chosen[1]}" == component.url


def test_a_port_of_an_earlier_run_is_kept_where_it_is_free(
    tmp_path: Path, held: ExitStack
) -> None:
    (port,) = free_ports(1)

    component = Launch(Recipe(server, is_ready), tmp_path, before=earlier(port)).wait()
    held.callback(stop, [component])

    assert f"http://{LOOPBACK}:{port}" == component.url


def test_a_port_of_an_earlier_run_that_is_taken_is_given_up(
    tmp_path: Path, held: ExitStack
) -> None:
    (port,) = free_ports(1)
    take(port, held)

    component = Launch(Recipe(server, is_ready), tmp_path, before=earlier(port)).wait()
    held.callback(stop, [component])

    assert f"http://{LOOPBACK}:{port}" != component.url


def test_one_that_dies_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", "print('a hint'); raise SystemExit('no disk')")
    recipe = Recipe(lambda _: Command("server", "test", argv), lambda _: False)

    with pytest.raises(Failed, match=r"server did not come up .*server\.log") as caught:
        Launch(recipe, tmp_path).wait()

    assert {"a hint", "no disk"} == set(caught.value.log_lines)


def test_one_that_never_becomes_ready_is_ended(tmp_path: Path) -> None:
    launch = Launch(Recipe(server, lambda _: False), tmp_path)

    with pytest.raises(Failed):
        launch.wait(seconds=0.1)

    assert not launch.component.is_alive()


def test_one_that_runs_and_does_not_answer_is_started_again_at_its_port(
    tmp_path: Path, held: ExitStack
) -> None:
    hung = Launch(Recipe(server, is_ready), tmp_path).wait()
    held.callback(stop, [hung])
    recipe = Recipe(server, lambda component: component.pid != hung.pid and is_ready(component))

    component = Launch(recipe, tmp_path, before=hung).wait(old_seconds=0.1)
    held.callback(stop, [component])

    assert hung.url == component.url
    assert not hung.is_alive()


def test_a_crew_starts_nothing_twice_and_takes_back_only_what_it_started(
    tmp_path: Path, held: ExitStack
) -> None:
    recipe = Recipe(server, is_ready)
    earlier = Crew(tmp_path)
    earlier.ensure("server", recipe)
    earlier.settle()
    held.callback(earlier.end)
    running = earlier.component("server")
    assert running is not None

    crew = Crew(tmp_path, known=[running])
    crew.ensure("server", recipe)
    crew.settle()
    crew.take_back()

    assert running == crew.component("server")
    assert running.is_alive()


def test_a_crew_tells_of_each_start_and_end(tmp_path: Path) -> None:
    told: list[tuple[str, ...]] = []
    crew = Crew(tmp_path, on_change=lambda all_: told.append(tuple(each.name for each in all_)))

    crew.ensure("server", Recipe(server, is_ready))
    crew.take_back()

    assert [("server",), ()] == told


def test_free_ports_differ_and_are_free() -> None:
    ports = free_ports(20)

    assert 20 == len(set(ports))
    assert all(is_free(port) for port in ports)


def test_a_port_that_somebody_listens_on_is_not_free(held: ExitStack) -> None:
    (port,) = free_ports(1)
    take(port, held)

    assert not is_free(port)


def test_a_port_that_others_were_told_is_taken(tmp_path: Path, held: ExitStack) -> None:
    (port,) = free_ports(1)

    component = Launch(Recipe(server, is_ready, port=port), tmp_path).wait()
    held.callback(stop, [component])

    assert f"http://{LOOPBACK}:{port}" == component.url
