"""Programs that are on this machine already."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from muster_local.places import cache_directory, machine
from muster_local.versions import Project

_VERSION: Final = re.compile(r"\bv?(\d+\.\d+\.\d+)")
_VERSION_SECONDS: Final = 20


def cached_path(project: Project, component: str) -> Path:
    """Where *component* lies in the cache, or would."""
    return cache_directory() / "bin" / "-".join(machine()) / project.folder / component


def installed(project: Project, component: str) -> tuple[Path | None, list[str]]:
    """*component* from `KUBEBUILDER_ASSETS` or PATH, and what was wrong with those not taken."""
    refused: list[str] = []
    for path in _candidates(component):
        version = _version_of(path)
        if version is None:
            refused.append(f"{path} does not tell its version")
        elif version.rsplit(".", 1)[0] != project.minor:
            refused.append(f"{path} is {version}, not {project.minor}")
        else:
            return path, refused
    return None, refused or ["not in KUBEBUILDER_ASSETS nor on PATH"]


def _candidates(component: str) -> Iterator[Path]:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (found := shutil.which(component, path=assets)):
        yield Path(found).absolute()
    if found := shutil.which(component):
        yield Path(found).absolute()


def _version_of(path: Path) -> str | None:
    """The version that a program prints, with its v; None when it prints none."""
    try:
        answer = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stdout)
    return f"v{found[1]}" if found and answer.returncode == 0 else None
