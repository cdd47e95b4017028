"""The main job, end to end: the command, a local cluster with the whole platform, real processes.

One cluster for all, since starting it takes as long as the jobs. The command runs as a user runs
it, without a kubeconfig: it finds the only local cluster by itself.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from eventually import eventually
from muster_cli.api import Api
from muster_cli.session import connect

pytestmark = [pytest.mark.e2e, pytest.mark.integration]

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples"
MUSTER = Path(sys.executable).with_name("muster")
ENDED = {"Succeeded", "Failed", "Cancelled"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster with the whole platform, up for as long as the module's tests."""
    directory = tmp_path_factory.mktemp("e2e")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSTER_HOME", str(directory))
        # A kubeconfig of the user's own would come first; this one does not exist.
        patch.setenv("KUBECONFIG", str(directory / "none"))
        patch.delenv("MUSTER_API_URL", raising=False)
        up = muster("local", "up", "--name", "e2e", "--nodes", "2")
        try:
            assert up.returncode == 0, up.stderr
            yield directory
        finally:
            muster("local", "down", "--name", "e2e")


@pytest.fixture
def api(home: Path) -> Iterator[Api]:
    """The API, for polling: the command takes longer to start than it does to answer."""
    with connect().api() as found:
        yield found


def muster(*arguments: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [MUSTER, *arguments], input=given, capture_output=True, text=True, timeout=240, check=False
    )


@contextmanager
def following(job: str) -> Iterator[list[str]]:
    """Follows the log of *job* until it ends; what was printed is in the list afterwards."""
    printed: list[str] = []
    with subprocess.Popen(
        [MUSTER, "logs", job, "-f"], stdout=subprocess.PIPE, text=True
    ) as command:
        try:
            yield printed
            printed.append(command.communicate(timeout=30)[0])
        finally:
            command.kill()


def answer(*arguments: str) -> Any:
    found = muster(*arguments, "-o", "json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def short_digits(directory: Path) -> str:
    """The example with two processes and four epochs, and checkpoints in *directory*."""
    documents = list(yaml.safe_load_all((EXAMPLES / "digits.yaml").read_text()))
    spec = next(d for d in documents if d["kind"] == "TrainingJob")["spec"]
    spec |= {"gpusPerReplica": 1, "processesPerReplica": 1}
    pod = spec["template"]["spec"]
    pod["containers"][0]["env"].append({"name": "DIGITS_EPOCHS", "value": "4"})
    (checkpoints,) = (v for v in pod["volumes"] if v["name"] == "checkpoints")
    checkpoints["hostPath"]["path"] = str(directory / "checkpoints")
    return str(yaml.safe_dump_all(documents))


def kill_replica(uid: str, replica: int) -> None:
    """SIGKILL to the process that the container of a replica began with."""
    wanted = {"MUSTER_JOB_UID": uid, "MUSTER_REPLICA": str(replica)}

    def is_of_replica(process: psutil.Process | None) -> bool:
        try:
            return process is not None and wanted.items() <= process.environ().items()
        except psutil.Error:
            return False

    first = [
        p for p in psutil.process_iter() if is_of_replica(p) and not is_of_replica(p.parent())
    ]
    assert first, f"no process of replica {replica} runs"
    for process in first:
        process.kill()


def test_a_job_goes_from_submit_to_what_it_cost(home):
    submitted = muster("submit", str(EXAMPLES / "hello.yaml"), "--follow")

    assert submitted.returncode == 0, submitted.stderr
    assert ["Succeeded"] == [j["phase"] for j in answer("jobs")["items"]]
    bill = answer("cost", "hello")
    assert bill["total_micro_usd"] == sum(line["micro_usd"] for line in bill["lines"]) > 0
    assert bill["gpu_seconds"] == sum(line["gpu_seconds"] for line in bill["lines"]) > 0
    assert (True, True) == (bill["priced"], bill["simulated"])


def test_all_replicas_print_into_the_log(home):
    printed = muster("logs", "hello").stdout

    assert ["[0] replica 0", "[1] replica 1"] == [line[:13] for line in printed.splitlines()]
    assert muster("logs", "hello", "--rank", "1").stdout.startswith("replica 1 of 2")


def test_a_script_that_raises_fails_with_its_traceback(home):
    submitted = muster("submit", str(EXAMPLES / "raises.yaml"), "--follow")

    last = "ValueError: the learning rate is 0.0, it must be above 0"
    assert (1, True) == (submitted.returncode, last in submitted.stderr)
    printed = muster("logs", "raises").stdout
    assert "Traceback (most recent call last):" in printed
    assert last == printed.splitlines()[-1]
    assert last in answer("describe", "raises")["message"]


async def test_a_gang_that_loses_a_replica_goes_on_from_its_checkpoint(api, tmp_path):
    submitted = muster("submit", "-", given=short_digits(tmp_path))
    assert submitted.returncode == 0, submitted.stderr

    def job():
        return api.job("default", "digits")

    with following("digits") as printed:
        await eventually(lambda: job()["checkpoint"]["verified"], within=120)
        kill_replica(job()["uid"], 1)
        await eventually(lambda: job()["phase"] in ENDED, within=120)
    found = answer("describe", "digits")

    assert ("Succeeded", 2) == (found["phase"], found["attempt"]), found["message"]
    assert "starting anew" in printed[0]
    assert "resumed from step-" in printed[0]
    finished = [epoch["epoch"] for epoch in found["epochs"] if epoch["finished"]]
    assert [0, 1, 2, 3] == finished
    assert {"startup", "epoch", "restart"} <= {line["class"] for line in found["cost"]["lines"]}


MISTAKES = {
    "no replicas": ({"replicas": 0}, "spec.replicas"),
    "negative GPUs": ({"gpusPerReplica": -1}, "spec.gpusPerReplica"),
    "more than all": ({"replicas": 2, "minReplicas": 3}, "spec.minReplicas"),
    "an unknown queue": ({"queue": "nowhere"}, "spec.queue"),
    "an unknown level": ({"topology": {"required": "planet"}}, "spec.topology.required"),
    "no containers": ({"template": {"spec": {"containers": []}}}, "spec.template"),
    "a node chosen": (
        {"template": {"spec": {"nodeName": "n", "containers": [{"name": "a", "image": "a"}]}}},
        "nodeName",
    ),
}


@pytest.mark.parametrize("claim", MISTAKES)
def test_bad_input_is_one_line_that_names_the_field(claim, home):
    change, field = MISTAKES[claim]
    job = yaml.safe_load((EXAMPLES / "hello.yaml").read_text())
    job["metadata"]["name"] = "bad"
    job["spec"].update(change)

    found = muster("submit", "-", given=yaml.safe_dump(job))

    assert (2, "", 1) == (found.returncode, found.stdout, len(found.stderr.splitlines()))
    assert field in found.stderr


def test_bad_input_created_nothing(home):
    assert {"hello", "raises", "digits"} == {job["name"] for job in answer("jobs")["items"]}


def test_a_name_of_more_than_40_characters_is_refused(home):
    job = yaml.safe_load((EXAMPLES / "hello.yaml").read_text())
    job["metadata"]["name"] = "a" * 41

    found = muster("submit", "-", given=yaml.safe_dump(job))

    assert (2, True) == (found.returncode, "metadata.name" in found.stderr)


def test_cancelling_ends_a_job_and_keeps_its_history(home):
    job = yaml.safe_load((EXAMPLES / "hello.yaml").read_text())
    job["metadata"]["name"] = "endless"
    job["spec"]["template"]["spec"]["containers"][0]["command"] = ["sleep", "600"]
    submitted = muster("submit", "-", given=yaml.safe_dump(job))
    assert submitted.returncode == 0, submitted.stderr

    cancelled = muster("cancel", "endless")

    assert 0 == cancelled.returncode
    assert "Cancelled" == answer("describe", "endless")["phase"]
