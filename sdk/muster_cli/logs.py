"""What the replicas of a job print: of one attempt or, when following, of each in turn.

Read from the API server with the user's own credentials, as `kubectl logs` does.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from muster import wire
from muster.errors import MusterError, NotFound
from muster_cli.follow import ENDED
from muster_kube import JOBS, PODS, ApiError, ApiNotFound, Kind, Kube, reflect

Json = dict[str, Any]
Write = Callable[[int, int, str], None]
"""Takes attempt, replica and a line."""

_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True)
class Selection:
    """Whose output is wanted; None is all."""

    replica: int | None = None
    attempt: int | None = None

    def includes(self, pod: Json) -> bool:
        """Whether *pod* is wanted."""
        return self.replica in {None, replica_of(pod)} and self.attempt in {None, attempt_of(pod)}


def attempt_of(pod: Json) -> int:
    """The attempt that *pod* belongs to."""
    return int(pod["metadata"]["labels"].get(wire.LABEL_ATTEMPT, 0))


def replica_of(pod: Json) -> int:
    """The replica that *pod* is."""
    return int(pod["metadata"]["labels"].get(wire.LABEL_REPLICA, 0))


def replica_of_rank(job: Json, rank: int) -> int:
    """The replica that runs *rank*: the ranks of a replica are numbered side by side."""
    spec = job["spec"]
    processes = spec.get("processesPerReplica") or spec.get("gpusPerReplica") or 1
    count = processes * spec["replicas"]
    if not 0 <= rank < count:
        raise NotFound(f"--rank {rank}: {job['metadata']['name']} has ranks 0 to {count - 1}")
    return int(rank // processes)


def newest_attempt(pods: Iterable[Json]) -> list[Json]:
    """The pods of the newest attempt among *pods*, in rank order."""
    found = list(pods)
    newest = max((attempt_of(pod) for pod in found), default=0)
    return sorted(
        (pod for pod in found if attempt_of(pod) == newest),
        key=lambda pod: (replica_of(pod), pod["metadata"]["name"]),
    )


async def read_job(kube: Kube, namespace: str, name: str) -> Json:
    """The TrainingJob, for its shape. Raises `NotFound` in words."""
    try:
        return await kube.get(JOBS.path(namespace, name))
    except ApiNotFound as error:
        raise NotFound(
            f"there is no TrainingJob {name} in namespace {namespace}; "
            f"see: muster jobs -n {namespace}"
        ) from error


async def print_logs(
    kube: Kube, namespace: str, job: str, selection: Selection, write: Write
) -> None:
    """Write what the chosen replicas have printed, one after the other."""
    pods, _ = await kube.list(PODS.path(namespace), query=_of_job(job))
    chosen = newest_attempt(pod for pod in pods if selection.includes(pod))
    started = [pod for pod in chosen if has_started(pod)]
    if not started:
        raise NotFound(_nothing(job, namespace, selection, has_pods=bool(chosen)))
    for pod in started:
        await _print(kube, pod, write)


async def follow_logs(
    kube: Kube, namespace: str, job: str, selection: Selection, write: Write
) -> None:
    """Write what the chosen replicas print, as it comes, until the job has ended."""
    # Asked once in plain: a watch goes on trying what is forbidden.
    await kube.list(PODS.path(namespace), query=_of_job(job))
    try:
        async with asyncio.TaskGroup() as group:
            await _follow(kube, namespace, job, _Followed(kube, selection, write, group))
    except ExceptionGroup as failures:
        known = failures.subgroup(MusterError)
        if known is None:
            raise
        raise known.exceptions[0] from failures


async def _follow(kube: Kube, namespace: str, job: str, followed: "_Followed") -> None:
    async def watch_pods() -> None:
        async for change in reflect(kube, PODS.path(namespace), query=_of_job(job)):
            if change.object and change.kind is not Kind.DELETED:
                followed.start(change.object)

    watcher = followed.group.create_task(watch_pods())
    await _end_of(kube, namespace, job)
    # The watch may be a moment behind; the last words of a failed replica must not be lost.
    pods, _ = await kube.list(PODS.path(namespace), query=_of_job(job))
    for pod in pods:
        followed.start(pod)
    await asyncio.gather(*followed.tasks.values())
    watcher.cancel()


@dataclass(slots=True)
class _Followed:
    """The pods whose output is being written, each once."""

    kube: Kube
    selection: Selection
    write: Write
    group: asyncio.TaskGroup
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def start(self, pod: Json) -> None:
        """Write the output of *pod* if it is wanted, has begun and is not being written yet."""
        uid = pod["metadata"]["uid"]
        if uid not in self.tasks and self.selection.includes(pod) and has_started(pod):
            self.tasks[uid] = self.group.create_task(
                _print(self.kube, pod, self.write, follow="true")
            )


def has_started(pod: Json) -> bool:
    """Whether *pod* may have printed anything."""
    return (pod.get("status") or {}).get("phase") in {"Running", "Succeeded", "Failed"}


async def _print(kube: Kube, pod: Json, write: Write, **query: str) -> None:
    metadata = pod["metadata"]
    path = PODS.path(metadata["namespace"], metadata["name"], "log")
    container = (metadata.get("annotations") or {}).get(
        _DEFAULT_CONTAINER, pod["spec"]["containers"][0]["name"]
    )
    attempt, replica = attempt_of(pod), replica_of(pod)
    try:
        async for line in kube.stream(path, container=container, **query):
            write(attempt, replica, line.decode(errors="replace"))
    except ApiNotFound:
        return  # Deleted meanwhile, with its output.
    except ApiError as error:
        write(attempt, replica, f"(its log ends here: {error})")


async def _end_of(kube: Kube, namespace: str, job: str) -> None:
    """Return once *job* has ended or is gone."""
    query = {"fieldSelector": f"metadata.name={job}"}
    async for change in reflect(kube, JOBS.path(namespace), query=query):
        phase = (change.object.get("status") or {}).get("phase")
        if change.kind is Kind.DELETED or phase in ENDED:
            return


def _of_job(job: str) -> dict[str, str]:
    return {"labelSelector": f"{wire.LABEL_JOB}={job}"}


def _nothing(job: str, namespace: str, selection: Selection, *, has_pods: bool) -> str:
    """Why there is no output, in words."""
    if has_pods:
        return f"{job} has not started yet; see: muster describe {job} -n {namespace}"
    wanted = [
        f"{what} {value}"
        for what, value in (("attempt", selection.attempt), ("replica", selection.replica))
        if value is not None
    ]
    of = f" of {' and '.join(wanted)}" if wanted else ""
    return f"{job} has no pods{of}: not started yet, or gone, and their output with them"
