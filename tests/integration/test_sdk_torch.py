"""The SDK with torch: real processes that agree over gloo, real state, a real full disk."""

import json
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

from torchruns import BIN, free_port, started

pytestmark = pytest.mark.integration

TRAINING = """
    import logging
    import numpy as np
    import torch
    import torch.distributed as dist
    import muster_sdk as muster

    logging.basicConfig(level="INFO", format="%(message)s")
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    run = muster.init()
"""

SAVES = (
    TRAINING
    + """
    for epoch in run.epochs(1):
        model(torch.randn(8, 4)).square().sum().backward()
        optimizer.step()
        run.step()
        saved = run.save(
            model=model,
            optimizer=optimizer,
            history=np.arange(3.0),
            per_rank={"mine": torch.full((2,), run.rank)},
        )
    assert saved.id == "step-1", saved
    moment = optimizer.state_dict()["state"][0]["exp_avg"].tolist()
    print("SAVED", run.rank, torch.rand(1).item(), moment, list(model.parameters()))

    class Odd: pass
    assert run.save(step=7, odd=Odd() if run.rank == 0 else None) is None
    dist.destroy_process_group()
"""
)

RESTORES = (
    TRAINING
    + """
    start = run.restore(model=model, optimizer=optimizer)
    assert start["history"].tolist() == [0.0, 1.0, 2.0], start["history"]
    assert start["mine"].tolist() == [run.rank] * 2, start["mine"]
    assert list(run.epochs(3)) == [1, 2]
    moment = optimizer.state_dict()["state"][0]["exp_avg"].tolist()
    print("RESTORED", run.rank, torch.rand(1).item(), moment, list(model.parameters()))
    dist.destroy_process_group()
"""
)


def ranks(script: Path, *, size: int, **environ: str) -> list[str]:
    """Run *script* as *size* ranks, without torchrun, which would take as long again to start."""
    port = str(free_port())
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                started(
                    [sys.executable, script],
                    RANK=str(rank),
                    WORLD_SIZE=str(size),
                    MASTER_PORT=port,
                    **environ,
                )
            )
            for rank in range(size)
        ]
        outputs = [process.communicate(timeout=120)[0] for process in processes]
        assert [0] * size == [process.returncode for process in processes], outputs
    return outputs


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(text))
    return path


def test_two_ranks_save_their_state_and_two_others_go_on_with_it(tmp_path: Path) -> None:
    store = tmp_path / "checkpoints"
    job = {"MUSTER_JOB": "t", "MUSTER_JOB_UID": "uid", "MUSTER_CHECKPOINT_URI": f"file://{store}"}

    saved = ranks(script(tmp_path, SAVES), size=2, MUSTER_ATTEMPT="1", **job)
    restored = ranks(script(tmp_path, RESTORES), size=2, MUSTER_ATTEMPT="2", **job)

    def told(word: str, output: str) -> str:
        return next(line for line in output.splitlines() if line.startswith(word)).partition(" ")[
            2
        ]

    assert [told("SAVED", output) for output in saved] == [
        told("RESTORED", output) for output in restored
    ]
    manifest = json.loads((store / "step-1/attempt-1-round-0/manifest.json").read_bytes())
    assert {"part-0.pt", "part-1.pt", "replicated.pt"} == {p["name"] for p in manifest["parts"]}
    # What could never be loaded was refused, on both ranks, and left nothing.
    assert all("replicated.pt holds what is never loaded (__main__.Odd)" in o for o in saved)
    assert not (store / "step-7").exists()
    started_from = json.loads((store / "rounds/attempt-2-round-0.json").read_bytes())
    assert {"step": 1, "attempt": 1, "round": 0} == started_from["resumes_from"]


FULL_DISK = """
    import torch
    import muster_sdk as muster

    run = muster.init()
    assert run.save(step=1, weights=torch.zeros(100_000)).id == "step-1"
    for epoch in run.epochs(1):
        assert run.save(step=2, weights=torch.zeros(2_000_000)) is None
        run.step()
    assert run.steps == 3
    assert muster.init().restore().id == "step-1"
    print("TRAINED ON")
"""


def test_a_full_disk_ends_neither_the_training_nor_the_last_checkpoint(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounting = ["unshare", "--mount", "--map-root-user"]
    probe = f"mount -t tmpfs -o size=4m none {small}"
    if subprocess.run([*mounting, "sh", "-c", probe], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let us mount a small file system")
    path = script(tmp_path, FULL_DISK)
    show = f"find {small} -type f"
    line = f"{probe} && {sys.executable} {path} && {show}"

    with started([*mounting, "sh", "-c", line], MUSTER_CHECKPOINT_URI=f"file://{small}") as run:
        output, _ = run.communicate(timeout=120)

    assert 0 == run.returncode, output
    told = [each for each in output.splitlines() if each.startswith("checkpoint not saved")]
    assert 1 == len(told)
    assert told[0].startswith(
        f"checkpoint not saved: id=step-2 reason=no space left at file://{small}"
        "/step-2/attempt-1-round-0/replicated.pt: it needs about 8000000 bytes, "
    )
    assert "TRAINED ON" in output
    assert f"{small}/step-2" not in output.rpartition("TRAINED ON")[2]


def test_a_script_that_raises_under_torchrun_leaves_its_own_last_line(tmp_path: Path) -> None:
    message = tmp_path / "termination-log"
    message.touch()
    path = script(
        tmp_path,
        """
        import os
        import muster_sdk as muster

        muster.init()
        if os.environ["RANK"] == "1":
            raise ValueError("the learning rate is negative")
        os.read(0, 1)
        """,
    )

    with started(
        [BIN / "torchrun", path],
        MUSTER_JOB="t",
        MUSTER_TERMINATION_LOG=str(message),
        PET_NNODES="1",
        PET_NPROC_PER_NODE="2",
        PET_NODE_RANK="0",
        PET_MASTER_ADDR="127.0.0.1",
        PET_MASTER_PORT=str(free_port()),
    ) as run:
        output, _ = run.communicate(timeout=120)

    assert 1 == run.returncode
    assert "ValueError: the learning rate is negative" in output
    assert set("=") == set(output.splitlines()[-1])
    assert "ValueError: the learning rate is negative" == message.read_text()
