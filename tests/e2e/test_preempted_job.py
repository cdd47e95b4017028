"""A real training job is asked for a checkpoint, leaves, and goes on from it.

The whole platform and real processes: the operator asks in the job's status, the API hands it to
rank 0, all ranks save after the same step, and the recorder says so.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from eventually import eventually
from muster_kube import JOBS, Kube

pytestmark = [pytest.mark.e2e, pytest.mark.integration]

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples"
MUSTER = Path(sys.executable).with_name("muster")


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of one node with two GPUs, and the whole platform."""
    directory = tmp_path_factory.mktemp("preempted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSTER_HOME", str(directory))
        patch.setenv("KUBECONFIG", str(directory / "none"))
        patch.delenv("MUSTER_API_URL", raising=False)
        muster("local", "up", "--name", "preempted", "--nodes", "1", "--gpus", "2")
        try:
            yield Path(muster("local", "kubeconfig", "--name", "preempted").strip())
        finally:
            muster("local", "down", "--name", "preempted")


def muster(*arguments: str) -> str:
    done = subprocess.run(
        [MUSTER, *arguments], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_job_that_makes_room_loses_no_step(kubeconfig: Path, tmp_path: Path) -> None:
    async with await Kube.connect(kubeconfig) as kube:

        async def status(name: str) -> dict[str, Any]:
            return dict((await kube.get(JOBS.path("default", name))).get("status") or {})

        async def is_in(name: str, *phases: str) -> dict[str, Any]:
            found = await status(name)
            assert found.get("phase") in phases, found
            return found

        for document in _endless_digits(tmp_path):
            plural = "configmaps" if document["kind"] == "ConfigMap" else ""
            path = f"/api/v1/namespaces/default/{plural}" if plural else JOBS.path("default")
            await kube.create(path, document)
        await eventually(lambda: _is_saved(status), within=150)
        await kube.create(JOBS.path("default"), _short())
        asked = await eventually(lambda: is_in("digits", "Preempting"), within=20)
        # The checkpoint is what lets it go, long before its notice of a minute is over.
        await eventually(lambda: is_in("short", "Succeeded"), within=50)
        again = await eventually(lambda: is_in("digits", "Running"), within=90)
        assert "Preempted" == again["attempts"][0]["outcome"]
        assert "its checkpoint is saved" in again["attempts"][0]["message"]
        assert {"preemption": 1, "infrastructure": 0, "user": 0} == again["restarts"]
        left_at, deadline = again["attempts"][0]["endedAt"], asked["directive"]["deadline"]
        assert left_at < deadline
        resumed = await eventually(lambda: _resumed_from(tmp_path), within=60)
        # Saved after it was asked.
        assert resumed > int(asked["checkpoint"]["step"])
        await kube.delete(JOBS.path("default", "digits"))


async def _is_saved(status: Any) -> bool:
    return bool((await status("digits")).get("checkpoint", {}).get("verified"))


def _endless_digits(directory: Path) -> list[dict[str, Any]]:
    """The example as two replicas of one process, with more epochs than anybody waits for."""
    documents = list(yaml.safe_load_all((EXAMPLES / "digits.yaml").read_text()))
    spec = next(d for d in documents if d["kind"] == "TrainingJob")["spec"]
    spec |= {"gpusPerReplica": 1, "processesPerReplica": 1}
    pod = spec["template"]["spec"]
    pod["containers"][0]["env"].append({"name": "DIGITS_EPOCHS", "value": "10000"})
    (checkpoints,) = (v for v in pod["volumes"] if v["name"] == "checkpoints")
    checkpoints["hostPath"]["path"] = str(directory / "checkpoints")
    return documents


def _short() -> dict[str, Any]:
    """A job that has to have all GPUs for a moment."""
    job: dict[str, Any] = yaml.safe_load((EXAMPLES / "hello.yaml").read_text())
    job["metadata"]["name"] = "short"
    job["spec"]["priority"] = 1
    return job


def _resumed_from(directory: Path) -> int:
    """The step that the second attempt goes on from, as its round says in the store."""
    files = list((directory / "checkpoints").glob("*/rounds/attempt-2-*.json"))
    assert 1 == len(files), files
    return int(json.loads(files[0].read_text())["resumes_from"]["step"])
