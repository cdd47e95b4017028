"""What `muster bench` computes, without a cluster."""

import asyncio
from typing import Any

import orjson
import pytest

from muster import wire
from muster.errors import InvalidSpec
from muster_local.bench.bare import bare_pod
from muster_local.bench.observer import Observer
from muster_local.bench.quantiles import quantile
from muster_local.bench.shape import Shape

QUANTILES = {
    "the median of an odd number is the middle one": ([1.0, 2.0, 3.0], 0.5, 2.0),
    "the median of an even number is the lower middle": ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0),
    "p99 of a few is the greatest": ([1.0, 2.0, 3.0], 0.99, 3.0),
    "one value is every quantile": ([7.0], 0.5, 7.0),
    "of nothing every quantile is 0": ([], 0.5, 0.0),
}


@pytest.mark.parametrize("claim", QUANTILES)
def test_quantiles(claim: str) -> None:
    values, part, want = QUANTILES[claim]

    assert want == quantile(values, part)


@pytest.mark.parametrize("flag", ["nodes", "gangs", "gang_size", "gpus_per_pod"])
def test_a_size_below_one_is_refused_by_the_name_of_its_flag(flag: str) -> None:
    sizes = {"nodes": 1, "gangs": 1, "gang_size": 1, "gpus_per_pod": 1} | {flag: 0}

    with pytest.raises(InvalidSpec, match=f"--{flag.replace('_', '-')}: must be at least 1, is 0"):
        Shape(**sizes)


def test_pods_that_end_carry_the_delay_that_kwok_reads() -> None:
    template = Shape(1, 1, 1, duration_seconds=5).job(0)["spec"]["template"]

    want = {"pod-complete.stage.kwok.x-k8s.io/delay": "5s"}
    assert want == template["metadata"]["annotations"]


def test_a_bare_pod_is_the_pod_without_what_the_server_set() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "bench", "uid": "u", "ownerReferences": [{}]},
        "spec": {"nodeName": "n", "serviceAccount": "default", "serviceAccountName": "default"},
        "status": {"phase": "Running"},
    }

    want = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "bare"},
        "spec": {"nodeName": "n", "serviceAccountName": "default"},
    }
    assert want == orjson.loads(bare_pod(pod, "bare"))


def _pod(gang: str, replica: int, node: str | None) -> dict[str, Any]:
    labels = {wire.LABEL_JOB: gang}
    metadata = {"name": f"{gang}-{replica}", "labels": labels}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


async def test_a_gang_is_whole_once_each_of_its_pods_is_bound() -> None:
    observer = Observer(Shape(1, 2, 2), done=asyncio.Event(), synced=asyncio.Event())
    for pod in (_pod("a", 0, "n"), _pod("a", 0, "n"), _pod("a", 1, None), _pod("b", 0, "n")):
        observer._see(pod)

    assert (set(), 2) == (set(observer.whole), observer.partial)

    observer._see(_pod("a", 1, "n"))

    assert ({"a"}, 1) == (set(observer.whole), observer.partial)
