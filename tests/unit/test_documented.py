"""What a user may meet is in the documents: commands, settings, metrics, reasons, fields."""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from muster.job_status import Outcome, Phase
from muster.restarts import REASONS, Cause
from muster.scheduling.plan import WaitReason
from muster_cli import main

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")])
DECIDERS = [*(ROOT / "core").rglob("*.py"), *(ROOT / "operator").rglob("*.py")]


def test_the_generated_pages_are_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)


def reasons_in_the_sources():
    """Every literal that becomes the reason of a status, a condition or an event."""
    for file in DECIDERS:
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id="Words" | "Story"), args=[ast.Constant(value=str(reason)), *_]
                ):
                    yield reason
                case ast.keyword(arg="reason", value=ast.Constant(value=str(reason))):
                    yield reason


def test_every_reason_is_explained():
    page = (REFERENCE / "reasons.md").read_text()
    reasons = {*reasons_in_the_sources(), *WaitReason, *REASONS.values(), *Outcome, *Cause}

    assert [] == sorted(reason for reason in reasons if reason and f"`{reason}`" not in page)


def test_every_phase_is_in_the_objects():
    assert set(Phase) <= set(re.findall(r"[A-Z][a-z]+", (REFERENCE / "objects.md").read_text()))


def test_every_page_is_reachable_from_the_readme():
    linked = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)[)#]", page.read_text()):
            linked.add((page.parent / target).resolve())

    missing = [link for link in linked if not link.exists()]
    unlinked = [p for p in PAGES if p.parent != ROOT and p not in linked and "docs" in p.parts]

    assert ([], []) == (missing, unlinked)


def command_lines():
    """Every `muster …` that a document or a help text tells its reader to type."""
    texts = [(str(page.relative_to(ROOT)), page.read_text()) for page in PAGES]
    texts += [(f"deploy/examples/{f.name}", f.read_text()) for f in ROOT.glob("deploy/examples/*")]
    for name, text in texts:
        for line in text.splitlines():
            for found in re.findall(r"(?:^|[`$(]\s*|# +|/)(muster [a-z][^`|;#)]*)", line):
                yield pytest.param(found.strip(), id=f"{name}: {found.strip()}")


@pytest.mark.parametrize("line", sorted(set(command_lines()), key=lambda p: p.id))
def test_a_command_line_in_the_documents_can_be_typed(line):
    words = shlex.split(re.sub(r"\s(>|2>|&&|\|).*", "", line))[1:]
    name, rest = words[0], words[1:]

    assert name in main.COMMANDS, f"there is no command {name}"
    command = main.load(name)
    while rest and hasattr(command, "commands"):
        assert rest[0] in command.commands, f"there is no command {name} {rest[0]}"
        command, rest = command.commands[rest[0]], rest[1:]
    known = {option for parameter in command.params for option in parameter.opts}
    used = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}

    assert used <= known | {"--help"}
