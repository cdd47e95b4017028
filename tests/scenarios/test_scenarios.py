"""Every scenario here holds: its own expectations, and what must hold in all of them.

The files beside this one are copies of the project's shared scenarios; `more` holds those that say
what the shared ones leave open. A file that is added is a test.
"""

from pathlib import Path

import pytest

from muster.simulation.play import play
from muster.simulation.reading import scenario_of
from muster_cli import yaml_file

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[1].parent / "shared" / "scenarios"
FILES = sorted(HERE.rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HERE)))
def test_it_holds(file):
    played = play(scenario_of(yaml_file.read(str(file)).value))

    assert ((), ()) == (played.shortfalls, played.violations)
    assert played.scenario.expect


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HERE)))
def test_its_comment_says_why_the_outcome_is_forced(file):
    assert file.read_text().startswith("# ")


@pytest.mark.skipif(not SHARED.is_dir(), reason="this clone stands alone")
def test_the_copies_are_equal_and_complete():
    shared = {file.name: file.read_text() for file in SHARED.glob("*.yaml")}
    copies = {file.name: file.read_text() for file in HERE.glob("*.yaml")}

    assert shared == copies
