"""Names of pods: every pod of a process node is reachable at 127.0.0.1, under its own name.

Pods that share a subdomain in a namespace, such as those of one job, share one hosts file, which
is mounted over /etc/hosts in each. It is changed in place, so that a pod that is there already
sees those that come later. Where nothing can be mounted, `substitution` puts the address in place
of the names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from muster import wire
from muster_local.nodes.fields import LOOPBACK

Raw = Mapping[str, Any]

_MACHINE_HOSTS: Final = Path("/etc/hosts")
_MOST_REPLICAS: Final = 4096


@dataclass(frozen=True, slots=True)
class Circle:
    """The pods that know each other by name. Without a subdomain it is one pod."""

    namespace: str
    name: str


def hostname_of(pod: Raw) -> str:
    """The pod's host name: at most 63 characters, as the kubelet cuts it."""
    name = str(pod["spec"].get("hostname") or pod["metadata"]["name"])
    return name[:63].rstrip("-.")


def circle_of(pod: Raw) -> Circle:
    """Whose names *pod* knows."""
    metadata = pod["metadata"]
    return Circle(metadata["namespace"], pod["spec"].get("subdomain") or f"pod-{metadata['uid']}")


def hostnames_of(pod: Raw) -> tuple[str, ...]:
    """The host names that are known because of *pod*: its own and, for a replica of a training
    job, those of all replicas, so that they resolve before their pods are there."""
    labels = pod["metadata"].get("labels") or {}
    job = labels.get(wire.LABEL_JOB)
    own = hostname_of(pod)
    if not job or pod["spec"].get("subdomain") != wire.service_name(job):
        return (own,)
    replicas = min(_replicas_of(pod), _MOST_REPLICAS)
    return tuple(dict.fromkeys((own, *(wire.host_name(job, i) for i in range(replicas)))))


def long_names(hostname: str, pod: Raw) -> tuple[str, ...]:
    """The names of *hostname* in the circle of *pod* that tell the subdomain as well."""
    subdomain = pod["spec"].get("subdomain")
    if not subdomain:
        return ()
    namespace = pod["metadata"]["namespace"]
    short = f"{hostname}.{subdomain}"
    service = f"{short}.{namespace}.svc"
    return (f"{service}.cluster.local", service, f"{short}.{namespace}", short)


class HostsFiles:
    """Keeps one hosts file for each circle."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._members: dict[Circle, dict[str, tuple[str, ...]]] = {}
        """Lines by the uid of the pod that they are there for."""

    def join(self, pod: Raw) -> Path:
        """The hosts file of *pod*, with its names in it, and everywhere where they matter."""
        circle = circle_of(pod)
        lines = tuple(
            f"{LOOPBACK} {' '.join((*long_names(name, pod), name))}" for name in hostnames_of(pod)
        )
        self._members.setdefault(circle, {})[pod["metadata"]["uid"]] = lines
        return self._write(circle)

    def names(self, pod: Raw) -> tuple[str, ...]:
        """Every name that *pod* knows and that tells a subdomain."""
        lines = self._members.get(circle_of(pod), {}).values()
        words = (word for group in lines for line in group for word in line.split()[1:])
        return tuple(dict.fromkeys(word for word in words if "." in word))

    def leave(self, pod: Raw) -> None:
        """Forget *pod*. The file goes with the last of its circle."""
        circle = circle_of(pod)
        members = self._members.get(circle, {})
        members.pop(pod["metadata"]["uid"], None)
        # Names of pods that are gone may stay until then: nobody listens under them.
        if not members:
            self._members.pop(circle, None)
            self._file(circle).unlink(missing_ok=True)

    def _file(self, circle: Circle) -> Path:
        return self._directory / circle.namespace / circle.name

    def _write(self, circle: Circle) -> Path:
        file = self._file(circle)
        lines = dict.fromkeys(line for lines in self._members[circle].values() for line in lines)
        text = "\n".join((_machine_hosts(), *lines, "")).encode()
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
        elif file.read_bytes() != text:
            # In place: the file is mounted. Written over before it is cut, never empty.
            with file.open("r+b") as opened:
                opened.write(text)
                opened.truncate()
        return file


def _machine_hosts() -> str:
    return _MACHINE_HOSTS.read_text(encoding="utf-8") if _MACHINE_HOSTS.exists() else ""


def _replicas_of(pod: Raw) -> int:
    containers: Iterable[Raw] = pod["spec"]["containers"]
    for container in containers:
        for variable in container.get("env") or ():
            # Of a gang that changes its size it is `least:most`.
            value = str(variable.get("value") or "").rpartition(":")[2]
            if variable["name"] == wire.ENV_PET_NNODES and value.isdecimal():
                return int(value)
    return 0
