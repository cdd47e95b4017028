"""What elastic gangs get in their environment makes torchrun form anew when their size changes."""

import signal
import subprocess
import textwrap
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from eventually import eventually
from muster.decisions import placed
from muster.job_status import JobStatus
from muster.parse import job_of
from muster_operator.render import GangBody
from torchruns import BIN, free_port, started

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

SCRIPT = """
    import os
    import pathlib
    import time
    import torch.distributed as dist

    dist.init_process_group("gloo")
    world = dist.get_world_size()
    place = pathlib.Path(os.environ["PLACE"])
    (place / f"world-{world}-rank-{dist.get_rank()}-{os.environ['MUSTER_REPLICA']}").touch()
    while not (place / "done").exists():
        dist.barrier()
        time.sleep(0.2)
"""


def environments(place: Path, port: int) -> list[dict[str, str]]:
    """What the pods of an elastic gang of one or two replicas get."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "minReplicas": 1, "processesPerReplica": 1, "template": template}
    metadata = {"name": "train", "namespace": "team", "uid": "u"}
    job = job_of({"metadata": metadata, "spec": spec})
    status = placed(JobStatus(), ("n", "n"), "", gpus=0, port=port, now=0.0)
    assert status.placement is not None
    body = GangBody(job, replace(status.placement), 1, {}, "")
    found = []
    for replica in range(2):
        (container,) = orjson.loads(body.pod(replica))["spec"]["containers"]
        values = {v["name"]: v["value"] for v in container["env"]}
        local = {k: v.replace("train-0.train.team.svc", "127.0.0.1") for k, v in values.items()}
        found.append({**local, "PLACE": str(place), "OMP_NUM_THREADS": "1"})
    return found


async def test_a_gang_forms_anew_without_the_rank_that_left_and_with_one_that_came(
    tmp_path: Path,
) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    first, second = environments(tmp_path, free_port())

    def ranks(world: int) -> bool:
        seen = {path.name.rsplit("-", 2)[1] for path in tmp_path.glob(f"world-{world}-*")}
        return len(seen) == world

    with ExitStack() as stack:

        def start(environ: dict[str, str]) -> "subprocess.Popen[str]":
            return stack.enter_context(started([BIN / "torchrun", script], **environ))

        leader, other = start(first), start(second)
        await eventually(lambda: ranks(2), within=120)
        other.send_signal(signal.SIGTERM)
        await eventually(lambda: ranks(1), within=120)
        _forget(tmp_path, 2)
        start(second)
        await eventually(lambda: ranks(2), within=120)
        (tmp_path / "done").touch()
        output, _ = leader.communicate(timeout=60)
    assert 0 == leader.returncode, output


def _forget(place: Path, world: int) -> None:
    for path in place.glob(f"world-{world}-*"):
        path.unlink()
