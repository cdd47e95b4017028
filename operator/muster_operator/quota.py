"""Whether the resource quotas of a namespace have room for a whole gang.

Only what is needed to say no before anything exists: the API server still checks each pod, and
what it refuses midway is taken back. A quota that cannot be judged here counts as having room.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from muster.errors import InvalidSpec
from muster.parse import millis

Amounts = Mapping[str, int]
"""Amounts in thousandths, by the name that a quota gives them."""

_COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


@dataclass(frozen=True, slots=True)
class Quota:
    """One ResourceQuota: what it allows and what is used, for pods in its scopes."""

    name: str
    hard: Amounts
    used: Amounts
    scopes: tuple[Mapping[str, Any], ...] = ()


def quota_of(obj: Mapping[str, Any]) -> Quota:
    """The quota in a ResourceQuota object. Raises `InvalidSpec`."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    named = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return Quota(
        name=obj["metadata"]["name"],
        # Before the quota controller has looked at it, what is asked for is in the spec alone.
        hard=_amounts(status.get("hard") or spec.get("hard") or {}),
        used=_amounts(status.get("used") or {}),
        scopes=(*named, *expressions),
    )


def usage_of(pod_spec: Mapping[str, Any]) -> Amounts:
    """What one pod counts for, under all the names under which a quota may count it."""
    usage = {"pods": 1000, "count/pods": 1000}
    for kind in ("requests", "limits"):
        for resource, amount in _effective(pod_spec, kind).items():
            usage[f"{kind}.{resource}"] = amount
            if kind == "requests" and resource in _COMPUTE:
                usage[resource] = amount
    return usage


def shortfall(
    quotas: Iterable[Quota], pod_spec: Mapping[str, Any], pods: int, promised: Amounts
) -> str | None:
    """Why *pods* such pods do not fit beside what is used and *promised*; `None` if they do."""
    usage = usage_of(pod_spec)
    for quota in sorted(quotas, key=lambda q: q.name):
        if not _applies(quota, pod_spec):
            continue
        for resource, hard in sorted(quota.hard.items()):
            wanted = usage.get(resource, 0) * pods
            taken = quota.used.get(resource, 0) + promised.get(resource, 0)
            if wanted and taken + wanted > hard:
                return (
                    f"exceeded quota: {quota.name}, requested: {resource}={_shown(wanted)} "
                    f"for {pods} pods, used: {resource}={_shown(taken)}, "
                    f"limited: {resource}={_shown(hard)}"
                )
    return None


def times(usage: Amounts, pods: int) -> dict[str, int]:
    """The amounts of *pods* pods."""
    return {resource: amount * pods for resource, amount in usage.items()}


def _amounts(raw: Mapping[str, Any]) -> dict[str, int]:
    return {resource: millis(amount, resource) for resource, amount in raw.items()}


def _effective(pod_spec: Mapping[str, Any], kind: str) -> dict[str, int]:
    """The containers together, or the largest moment of the init containers where that is more."""
    total: dict[str, int] = {}
    largest: dict[str, int] = {}
    for container in pod_spec.get("initContainers") or ():
        asked = _asked(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(total, asked)
            asked = {}
        for resource in {*asked, *total}:
            moment = asked.get(resource, 0) + total.get(resource, 0)
            largest[resource] = max(largest.get(resource, 0), moment)
    for container in pod_spec.get("containers") or ():
        _add(total, _asked(container, kind))
    effective = {r: max(total.get(r, 0), largest.get(r, 0)) for r in {*total, *largest}}
    if kind == "requests":
        _add(effective, _amounts(pod_spec.get("overhead") or {}))
    return effective


def _asked(container: Mapping[str, Any], kind: str) -> dict[str, int]:
    resources = container.get("resources") or {}
    asked = resources.get(kind) or {}
    if kind == "requests":
        # A request that is left out is as high as the limit.
        asked = {**(resources.get("limits") or {}), **asked}
    return _amounts(asked)


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _applies(quota: Quota, pod_spec: Mapping[str, Any]) -> bool:
    return all(_in_scope(scope, pod_spec) for scope in quota.scopes)


def _in_scope(scope: Mapping[str, Any], pod_spec: Mapping[str, Any]) -> bool:
    """Whether a pod is in *scope*. A scope that we do not know is left to the API server."""
    is_bounded = pod_spec.get("activeDeadlineSeconds") is not None
    is_best_effort = not _effective(pod_spec, "requests") and not _effective(pod_spec, "limits")
    match scope.get("scopeName"):
        case "Terminating":
            return is_bounded
        case "NotTerminating":
            return not is_bounded
        case "BestEffort":
            return is_best_effort
        case "NotBestEffort":
            return not is_best_effort
        case "PriorityClass":
            return _names_class(scope, pod_spec.get("priorityClassName") or "")
    return False


def _names_class(scope: Mapping[str, Any], name: str) -> bool:
    values = scope.get("values") or ()
    match scope.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
    return False


def _shown(amount: int) -> str:
    return f"{amount}m" if amount % 1000 else str(amount // 1000)


def readable(obj: Mapping[str, Any]) -> Quota | None:
    """The quota in *obj*, `None` where its amounts cannot be read."""
    try:
        return quota_of(obj)
    except InvalidSpec:
        return None
