"""Where a pod may run: its node selector, required node affinity and tolerations."""

from typing import Final

from muster.errors import InvalidSpec
from muster.parse.raw import Raw, at, required_text, section, sections, text, texts
from muster.scheduling.snapshot import NodeRules, Requirement, Toleration

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_NODE: Final = (Requirement(key="metadata.name", operator="In", is_field=True),)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS: Final = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")


def rules_of(
    pod_spec: Raw,
    *,
    path: str = "spec",
    gpu_models: tuple[str, ...] = (),
    capacity_types: tuple[str, ...] = (),
) -> NodeRules:
    """The conditions on nodes in *pod_spec*, and the models and capacity types that a job allows.

    Raises `InvalidSpec` with a path below *path*.
    """
    selector = section(pod_spec, "nodeSelector", path)
    for key, value in selector.items():
        if not isinstance(value, str):
            raise InvalidSpec(f"{path}.nodeSelector[{key}]", f"must be a string; quote {value}")
    return NodeRules(
        selector=tuple(sorted(selector.items())),
        terms=_terms(pod_spec, path),
        tolerations=tuple(
            _toleration(raw, at(at(path, "tolerations"), index))
            for index, raw in enumerate(sections(pod_spec, "tolerations", path))
        ),
        gpu_models=gpu_models,
        capacity_types=capacity_types,
    )


def _terms(pod_spec: Raw, path: str) -> tuple[tuple[Requirement, ...], ...]:
    affinity = section(pod_spec, "affinity", path)
    path = at(path, "affinity")
    node_affinity = section(affinity, "nodeAffinity", path)
    path = at(path, "nodeAffinity")
    required = section(node_affinity, _REQUIRED, path)
    path = at(path, _REQUIRED)
    terms = sections(required, "nodeSelectorTerms", path)
    path = at(path, "nodeSelectorTerms")
    return tuple(_term(term, at(path, index)) for index, term in enumerate(terms))


def _term(raw: Raw, path: str) -> tuple[Requirement, ...]:
    """The requirements of one term. An empty term matches no node, as in Kubernetes."""
    found = tuple(
        _requirement(expression, at(at(path, key), index), is_field=key == "matchFields")
        for key in ("matchExpressions", "matchFields")
        for index, expression in enumerate(sections(raw, key, path))
    )
    return found or _NO_NODE


def _requirement(raw: Raw, path: str, *, is_field: bool) -> Requirement:
    key, comparison = required_text(raw, "key", path), required_text(raw, "operator", path)
    values = texts(raw, "values", path, may_be_empty=True)
    if is_field and key != "metadata.name":
        raise InvalidSpec(at(path, "key"), f"must be metadata.name, is {key!r}")
    if comparison not in _OPERATORS:
        raise InvalidSpec(
            at(path, "operator"), f"must be one of {', '.join(_OPERATORS)}, is {comparison!r}"
        )
    if comparison in ("Gt", "Lt") and not (len(values) == 1 and _is_integer(values[0])):
        raise InvalidSpec(at(path, "values"), f"must be one whole number for {comparison}")
    if comparison in ("In", "NotIn") and not values:
        raise InvalidSpec(at(path, "values"), f"must not be empty for {comparison}")
    return Requirement(key=key, operator=comparison, values=values, is_field=is_field)


def _toleration(raw: Raw, path: str) -> Toleration:
    key, comparison = text(raw, "key", path) or "", text(raw, "operator", path) or "Equal"
    effect = text(raw, "effect", path) or ""
    if comparison not in ("Equal", "Exists"):
        raise InvalidSpec(at(path, "operator"), f"must be Equal or Exists, is {comparison!r}")
    if not key and comparison != "Exists":
        raise InvalidSpec(at(path, "operator"), "must be Exists where there is no key")
    if effect not in _EFFECTS:
        raise InvalidSpec(
            at(path, "effect"), f"must be one of {', '.join(_EFFECTS[1:])}, is {effect!r}"
        )
    return Toleration(
        key=key, operator=comparison, value=text(raw, "value", path) or "", effect=effect
    )


def _is_integer(value: str) -> bool:
    return value.removeprefix("-").isdecimal()
