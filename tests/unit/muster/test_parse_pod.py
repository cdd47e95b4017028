from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import InvalidSpec
from muster.parse import needs_of, rules_of
from muster.scheduling.snapshot import Needs, NodeRules, Requirement, Toleration

MI = 2**20


def c(cpu: str = "", memory: str = "", gpus: str = "", **more: Any) -> dict[str, Any]:
    """A container that asks for this much."""
    named = {"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpus}
    requests = {key: value for key, value in named.items() if value}
    return {"name": "c", "resources": {"requests": requests}, **more}


def sidecar(cpu: str) -> dict[str, Any]:
    return c(cpu, restartPolicy="Always")


PODS = {
    "a pod that asks for nothing takes a slot alone": ({"containers": [{"name": "c"}]}, Needs()),
    "containers add up": (
        {"containers": [c("1500m", "1Gi", "4"), c("0.5", "512Mi", "2")]},
        Needs(6, 2000, 1536 * MI),
    ),
    "a limit without a request counts as one": (
        {
            "containers": [
                {
                    "resources": {
                        "requests": {"cpu": "100m"},
                        "limits": {"cpu": "4", "memory": "1Mi", "nvidia.com/gpu": 8},
                    }
                }
            ]
        },
        Needs(8, 100, MI),
    ),
    "an init container counts only beyond the containers": (
        {"initContainers": [c("3", "10Mi")], "containers": [c("2", "50Mi")]},
        Needs(0, 3000, 50 * MI),
    ),
    "init containers run one by one": (
        {"initContainers": [c("3"), c("4")], "containers": [c("1")]},
        Needs(0, 4000, 0),
    ),
    "sidecars stay beside the containers": (
        {"initContainers": [sidecar("1"), sidecar("2")], "containers": [c("4")]},
        Needs(0, 7000, 0),
    ),
    "an init container runs beside the sidecars before it": (
        {"initContainers": [sidecar("1"), c("5")], "containers": [c("2")]},
        Needs(0, 6000, 0),
    ),
    "an init container does not wait for the sidecars after it": (
        {"initContainers": [c("5"), sidecar("1")], "containers": [c("2")]},
        Needs(0, 5000, 0),
    ),
    "overhead comes on top": (
        {"containers": [c("1", "1Mi")], "overhead": {"cpu": "250m", "memory": "120Mi"}},
        Needs(0, 1250, 121 * MI),
    ),
    "what the pod asks for as a whole stands in for its containers": (
        {
            "containers": [c("1", "1Mi", "2")],
            "resources": {"requests": {"cpu": "3"}, "limits": {"memory": "9Mi"}},
            "overhead": {"cpu": "1"},
        },
        Needs(2, 4000, MI),
    ),
    "a limit of the pod counts where nobody asks for any": (
        {"containers": [c("1")], "resources": {"limits": {"memory": "9Mi", "cpu": "2"}}},
        Needs(0, 1000, 9 * MI),
    ),
    "other resources are not ours to count": (
        {"containers": [{"resources": {"requests": {"example.com/dongle": "3"}}}]},
        Needs(),
    ),
}


@pytest.mark.parametrize("claim", PODS)
def test_a_pod_takes_what_kubernetes_says(claim: str) -> None:
    spec, want = PODS[claim]
    assert want == needs_of(spec)


def test_another_resource_may_hold_the_gpus() -> None:
    spec = {"containers": [{"resources": {"limits": {"amd.com/gpu": "4"}}}]}
    assert Needs(gpus=4) == needs_of(spec, gpu_resource="amd.com/gpu")


AMOUNTS = st.integers(0, 64)


@given(st.lists(AMOUNTS, max_size=4), st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=5))
def test_a_pod_takes_its_largest_moment(
    running: list[int], starting: list[tuple[int, bool]]
) -> None:
    spec = {
        "containers": [c(str(cpu)) for cpu in running],
        "initContainers": [sidecar(str(cpu)) if stays else c(str(cpu)) for cpu, stays in starting],
    }
    moments = [
        cpu + sum(other for other, stays in starting[:index] if stays)
        for index, (cpu, _) in enumerate(starting)
    ]
    in_the_end = sum(running) + sum(cpu for cpu, stays in starting if stays)
    assert 1000 * max([in_the_end, *moments]) == needs_of(spec).cpu_millis


BAD_PODS = {
    "an amount that is none": (
        {"containers": [c("1"), c("two")]},
        "spec.containers[1].resources.requests.cpu: 'two' is no quantity",
    ),
    "an init container below nothing": (
        {"initContainers": [c(memory="-1Gi")]},
        "spec.initContainers[0].resources.requests.memory: must not be negative, is -1Gi",
    ),
    "containers that are no list": (
        {"containers": "train"},
        "spec.containers: must be a list, is 'train'",
    ),
    "a container that is no mapping": (
        {"containers": [["train"]]},
        "spec.containers[0]: must be a mapping, is a list",
    ),
    "resources that are no mapping": (
        {"containers": [{"resources": "lots"}]},
        "spec.containers[0].resources: must be a mapping, is 'lots'",
    ),
    "requests that are no mapping": (
        {"containers": [{"resources": {"requests": ["cpu"]}}]},
        "spec.containers[0].resources.requests: must be a mapping, is a list",
    ),
    "an overhead that is none": (
        {"overhead": {"cpu": "x"}},
        "spec.overhead.cpu: 'x' is no quantity",
    ),
    "a request of the whole pod that is none": (
        {"resources": {"limits": {"memory": {}}}},
        "spec.resources.limits.memory: a mapping is no quantity",
    ),
    "a text without end": (
        {"containers": [c("9" * 5000)]},
        "spec.containers[0].resources.requests.cpu: '99999",
    ),
}


@pytest.mark.parametrize("claim", BAD_PODS)
def test_a_bad_pod_is_refused_with_the_path_of_the_field(claim: str) -> None:
    spec, want = BAD_PODS[claim]
    with pytest.raises(InvalidSpec) as refused:
        needs_of(spec)
    assert str(refused.value).startswith(want)
    assert len(str(refused.value)) < 200


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": list(terms)
                }
            }
        }
    }


def test_a_pod_without_conditions_may_run_anywhere() -> None:
    assert NodeRules() == rules_of({"containers": []})


def test_selector_affinity_and_tolerations_are_read() -> None:
    spec = {
        "nodeSelector": {"zone": "b", "arch": "arm64"},
        "tolerations": [
            {"operator": "Exists"},
            {"key": "gpu", "value": "yes", "effect": "NoSchedule", "tolerationSeconds": 5},
        ],
        **required(
            {
                "matchExpressions": [
                    {"key": "gpus", "operator": "Gt", "values": ["4"]},
                    {"key": "disk", "operator": "In", "values": ["ssd", ""]},
                ]
            },
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
        ),
    }
    want = NodeRules(
        selector=(("arch", "arm64"), ("zone", "b")),
        terms=(
            (Requirement("gpus", "Gt", ("4",)), Requirement("disk", "In", ("ssd", ""))),
            (Requirement("metadata.name", "In", ("n1",), is_field=True),),
        ),
        tolerations=(
            Toleration(operator="Exists"),
            Toleration(key="gpu", value="yes", effect="NoSchedule"),
        ),
        gpu_models=("H100",),
        capacity_types=("spot",),
    )
    assert want == rules_of(spec, gpu_models=("H100",), capacity_types=("spot",))


def test_an_empty_term_matches_no_node() -> None:
    (term,) = rules_of(required({})).terms
    assert (Requirement("metadata.name", "In", (), is_field=True),) == term


def expression(**changes: Any) -> dict[str, Any]:
    whole = {"key": "k", "operator": "In", "values": ["v"]} | changes
    return required({"matchExpressions": [whole]})


WHERE = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    ".nodeSelectorTerms[0]"
)
BAD_RULES = {
    "a selector value that is no string": (
        {"nodeSelector": {"gpu": True}},
        "spec.nodeSelector[gpu]: must be a string; quote True",
    ),
    "an unknown operator": (
        expression(operator="Like"),
        f"{WHERE}.matchExpressions[0].operator: must be one of In, NotIn, Exists, DoesNotExist, "
        "Gt, Lt, is 'Like'",
    ),
    "no key": (expression(key=""), f"{WHERE}.matchExpressions[0].key: is missing"),
    "no values to be in": (
        expression(values=[]),
        f"{WHERE}.matchExpressions[0].values: must not be empty for In",
    ),
    "more than a word": (
        expression(operator="Gt", values=["many"]),
        f"{WHERE}.matchExpressions[0].values: must be one whole number for Gt",
    ),
    "another field": (
        required({"matchFields": [{"key": "spec.x", "operator": "Exists"}]}),
        f"{WHERE}.matchFields[0].key: must be metadata.name, is 'spec.x'",
    ),
    "a value that is no string": (
        expression(values=[1]),
        f"{WHERE}.matchExpressions[0].values[0]: must be a string, is 1",
    ),
    "an unknown way to tolerate": (
        {"tolerations": [{"key": "k", "operator": "In"}]},
        "spec.tolerations[0].operator: must be Equal or Exists, is 'In'",
    ),
    "equal to no key": (
        {"tolerations": [{"value": "v"}]},
        "spec.tolerations[0].operator: must be Exists where there is no key",
    ),
    "an unknown effect": (
        {"tolerations": [{"key": "k", "effect": "Never"}]},
        "spec.tolerations[0].effect: must be one of NoSchedule, PreferNoSchedule, NoExecute, "
        "is 'Never'",
    ),
}


@pytest.mark.parametrize("claim", BAD_RULES)
def test_a_bad_rule_is_refused_with_the_path_of_the_field(claim: str) -> None:
    spec, want = BAD_RULES[claim]
    with pytest.raises(InvalidSpec) as refused:
        rules_of(spec)
    assert want == str(refused.value)
