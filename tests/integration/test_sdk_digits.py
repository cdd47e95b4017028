"""The digits for real: two torchruns as two replicas, one of them killed, and the gang goes on."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from eventually import eventually
from torchruns import BIN, end, free_port, started

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).parents[2] / "deploy" / "examples" / "digits.py"
EPOCHS = 3


@contextmanager
def gang(
    tmp_path: Path, attempt: int
) -> Iterator[tuple[list["subprocess.Popen[str]"], list[Path]]]:
    """Two replicas of one process each, as the operator starts them; their logs."""
    port = str(free_port())
    logs = [tmp_path / f"attempt-{attempt}-replica-{replica}.log" for replica in (0, 1)]
    with ExitStack() as stack:
        replicas = [
            stack.enter_context(
                started(
                    [BIN / "torchrun", SCRIPT],
                    log=log,
                    DIGITS_EPOCHS=str(EPOCHS),
                    MUSTER_JOB="digits",
                    MUSTER_JOB_UID="uid",
                    MUSTER_ATTEMPT=str(attempt),
                    MUSTER_REPLICA=str(replica),
                    MUSTER_CHECKPOINT_URI=f"file://{tmp_path}/checkpoints/uid",
                    PET_NNODES="2",
                    PET_NPROC_PER_NODE="1",
                    PET_NODE_RANK=str(replica),
                    PET_MASTER_ADDR="127.0.0.1",
                    PET_MASTER_PORT=port,
                )
            )
            for replica, log in enumerate(logs)
        ]
        yield replicas, logs


# 30 s where nothing else runs: each of two attempts imports torch four times.
@pytest.mark.timeout(420)
async def test_a_gang_that_loses_a_replica_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    with gang(tmp_path, attempt=1) as (replicas, logs):
        # The second epoch's line says that the first one's checkpoint is verified.
        await eventually(lambda: "epoch 1:" in logs[0].read_text(), within=120)
        end(replicas[1])
        await eventually(lambda: replicas[0].poll() is not None, within=60)
        assert 0 != replicas[0].returncode

    with gang(tmp_path, attempt=2) as (replicas, logs):
        for replica in replicas:
            await eventually(lambda replica=replica: replica.poll() is not None, within=120)
        told = logs[0].read_text()
        assert [0, 0] == [replica.returncode for replica in replicas], told

    resumed = re.search(r"resumed from step-(\d+)", told)
    assert resumed is not None, told
    steps_per_epoch = 66
    done = int(resumed[1]) // steps_per_epoch
    assert done in {1, 2}
    assert list(range(done, EPOCHS)) == [int(n) for n in re.findall(r"^epoch (\d+):", told, re.M)]
    accuracy = re.search(r"^accuracy ([\d.]+)", told, re.M)
    assert accuracy is not None
    assert float(accuracy[1]) >= 0.95
    origin = json.loads((tmp_path / "checkpoints/uid/rounds/attempt-2-round-0.json").read_bytes())
    assert int(resumed[1]) == origin["resumes_from"]["step"]


def test_the_manifest_of_the_digits_carries_the_script_as_it_is() -> None:
    checked = subprocess.run(
        [sys.executable, SCRIPT.with_name("generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (checked.returncode, checked.stderr)
