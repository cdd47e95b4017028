"""What to launch for a container: everything about it and its pod, put together.

Only computes, but for the sub-paths of volumes, which `volumes.mounts_of` makes.
"""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from muster import wire
from muster_local.nodes.devices import Grant
from muster_local.nodes.environment import (
    VISIBLE_DEVICES,
    command_of,
    environment_of,
    leading,
)
from muster_local.nodes.hosts import hostname_of
from muster_local.nodes.instance import RUN_VARIABLE
from muster_local.nodes.launcher.launch import MESSAGE, Launch, Mount
from muster_local.nodes.sources import Sources
from muster_local.nodes.substitution import substitution
from muster_local.nodes.volumes import mounts_of

Raw = Mapping[str, Any]

_HOSTS: Final = "/etc/hosts"


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds the containers of one pod."""

    platform: Mapping[str, str]
    """Environment that comes from the platform."""
    programs: str
    """The directory that leads PATH."""
    allocatable: Mapping[str, str]
    sources: Sources
    places: Mapping[str, Path]
    """Where each volume is."""
    hosts: Path
    """The hosts file of the pod."""
    names: Sequence[str]
    """The names in it that tell a subdomain."""
    grant: Grant
    has_namespaces: bool


def order_of(pod: Raw, container: Raw, run: Path, work: Path, setting: Setting) -> Launch:
    """How to launch *container* of *pod* with its files in *run*.

    *work* is its working directory where it names none. Raises `Missing`, `InvalidSpec`.
    """
    variables = environment_of(
        pod,
        container,
        setting.sources,
        platform=_platform(pod, container, run, setting),
        allocatable=setting.allocatable,
    )
    variables["PATH"] = leading(variables.get("PATH", ""), setting.programs)
    command = command_of(container, variables)
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    message = container.get("terminationMessagePath") or wire.TERMINATION_LOG_PATH
    mounts = (
        *mounts_of(container, volumes, setting.places, variables),
        Mount(str(run / MESSAGE), posixpath.normpath(message)),
    )
    directory = container.get("workingDir") or str(work)
    if setting.has_namespaces:
        hosts = () if _has_target(mounts, _HOSTS) else (Mount(str(setting.hosts), _HOSTS),)
        return Launch(
            command, variables, directory, mounts=(*mounts, *hosts), hostname=hostname_of(pod)
        )
    substitute = substitution(mounts, setting.names)
    return Launch(
        tuple(substitute(word) for word in command),
        {name: substitute(value) for name, value in variables.items()},
        substitute(directory),
    )


def _platform(pod: Raw, container: Raw, run: Path, setting: Setting) -> dict[str, str]:
    found = {**setting.platform, "HOSTNAME": hostname_of(pod), RUN_VARIABLE: str(run)}
    if wire.GPU_RESOURCE in setting.allocatable:
        found[wire.ENV_SIMULATED_GPUS] = "1"
    if devices := setting.grant.get(container["name"]):
        found[VISIBLE_DEVICES] = ",".join(str(index) for index in devices)
    return found


def _has_target(mounts: Iterable[Mount], target: str) -> bool:
    return any(mount.target == target for mount in mounts)
