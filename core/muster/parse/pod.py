"""What a pod takes from its node.

The rules are those of kube-scheduler and the kubelet (`PodRequests` in
`k8s.io/component-helpers/resource`) after the API server's defaults, so that a pod that fits by
our account is not refused by the node. `needs_of` is on the watch path of every pod in the
cluster: it builds no path unless something is wrong.
"""

from typing import Final

from muster import wire
from muster.errors import InvalidSpec
from muster.parse.quantity import bytes_of, millis, whole
from muster.parse.raw import Raw, at, section, sections
from muster.scheduling.snapshot import Needs

_Amounts = tuple[int, int, int]
"""GPUs, CPU in thousandths, memory in bytes."""

_NOTHING: Final[_Amounts] = (0, 0, 0)


def needs_of(pod_spec: Raw, *, path: str = "spec", gpu_resource: str = wire.GPU_RESOURCE) -> Needs:
    """What the pod takes: its containers and sidecars together or, where that is more, the largest
    moment of its start, when init containers run one by one beside the sidecars started before
    them. Requests for the pod as a whole stand in for that, and overhead comes on top.

    Raises `InvalidSpec` with a path below *path*.
    """
    running = sidecars = starting = _NOTHING
    for index, container in enumerate(sections(pod_spec, "containers", path)):
        running = _plus(running, _asked(container, gpu_resource, path, "containers", index))
    for index, container in enumerate(sections(pod_spec, "initContainers", path)):
        asked = _asked(container, gpu_resource, path, "initContainers", index)
        starting = _most(starting, _plus(sidecars, asked))
        if container.get("restartPolicy") == "Always":
            sidecars = _plus(sidecars, asked)
    total = _most(_plus(running, sidecars), starting)
    if pod_spec.get("resources"):
        total = _for_the_whole_pod(pod_spec, total, path)
    if pod_spec.get("overhead"):
        overhead = section(pod_spec, "overhead", path)
        total = _plus(total, _amounts(overhead, gpu_resource, at(path, "overhead")))
    return Needs(*total)


def _asked(container: Raw, gpu_resource: str, path: str, kind: str, index: int) -> _Amounts:
    """The requests of a container; a limit without a request is one, as the API server has it."""
    if not container.get("resources"):
        return _NOTHING
    here = f"{path}.{kind}[{index}]"
    resources = section(container, "resources", here)
    here = f"{here}.resources"
    limits, requests = section(resources, "limits", here), section(resources, "requests", here)
    asked = {**limits, **requests} if limits else requests
    return _amounts(asked, gpu_resource, f"{here}.requests")


def _amounts(asked: Raw, gpu_resource: str, path: str) -> _Amounts:
    gpus, cpu, memory = asked.get(gpu_resource), asked.get("cpu"), asked.get("memory")
    try:
        return (
            0 if gpus is None else whole(gpus, gpu_resource),
            0 if cpu is None else millis(cpu, "cpu"),
            0 if memory is None else bytes_of(memory, "memory"),
        )
    except InvalidSpec as error:
        raise InvalidSpec(at(path, error.path), error.problem) from None


def _for_the_whole_pod(pod_spec: Raw, total: _Amounts, path: str) -> _Amounts:
    """*total* with the CPU and memory that the pod asks for as a whole (KEP-2837); a limit counts
    where neither pod nor containers ask for any."""
    resources = section(pod_spec, "resources", path)
    here = at(path, "resources")
    gpus, cpu, memory = total
    requests, limits = section(resources, "requests", here), section(resources, "limits", here)
    _, asked_cpu, asked_memory = _amounts(requests, "", at(here, "requests"))
    _, most_cpu, most_memory = _amounts(limits, "", at(here, "limits"))
    return gpus, asked_cpu or cpu or most_cpu, asked_memory or memory or most_memory


def _plus(one: _Amounts, other: _Amounts) -> _Amounts:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _most(one: _Amounts, other: _Amounts) -> _Amounts:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])
