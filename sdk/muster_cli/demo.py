"""`make demo`: a real job on a local cluster, one of its replicas killed on the way, and its bill.

Run as `python -m muster_cli.demo`, after `make setup`. The cluster stays up; `--clean` removes it.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster import wire
from muster.errors import NotFound, Unavailable
from muster.money import usd
from muster_cli import errors, follow, logs, main, output, pages, text
from muster_cli.session import Session, connect
from muster_kube import JOBS, PODS, ApiNotFound
from muster_local import resources, state
from muster_local.lifecycle import down
from muster_local.progress import progress

CLUSTER: Final = "demo"
JOB: Final = "digits"
EPOCHS: Final = 8
"""How many the example trains for."""
CHECKPOINTS: Final = Path("/tmp/muster-digits")  # noqa: S108 -- the example names it
VICTIM: Final = 1
"""The replica that is killed."""
LAST_LINES: Final = 20
_SECONDS_TO_GO: Final = 60.0


def demo() -> int:
    """Start the cluster, train, kill, resume, and show the bill; the exit code."""
    console = output.stdout()
    _step(console, f"muster local up --name {CLUSTER}", "a Kubernetes API on this machine")
    code = main.run(["local", "up", "--name", CLUSTER])
    if code != errors.OK:
        return code
    cluster = state.require(CLUSTER)
    # Whatever else this shell is set to: kubectl, muster and we mean this cluster.
    os.environ.pop(wire.ENV_API_URL, None)
    os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
    session = connect("default", None, cluster.kubeconfig)
    _remove_old(session)
    code = _apply(console, resources.examples() / "digits.yaml")
    if code != errors.OK:
        return code
    end = _follow(session)
    if end.phase != "Succeeded":
        return _failed(session, end)
    with session.api() as api:
        cost = api.cost(session.namespace, JOB, "epoch")
    _bill(console, end, cost)
    _try_next(console)
    return errors.OK


def clean() -> int:
    """Remove the cluster and the checkpoints of the demo; the exit code."""
    if CLUSTER in state.names():
        with progress() as tell:
            down(CLUSTER, tell)
    shutil.rmtree(CHECKPOINTS, ignore_errors=True)
    return errors.OK


def _remove_old(session: Session) -> None:
    """Delete the job of an earlier demo and wait until it is gone."""

    async def remove() -> None:
        path = JOBS.path(session.namespace, JOB)
        async with session.kube() as kube:
            deadline = time.monotonic() + _SECONDS_TO_GO
            while time.monotonic() < deadline:
                try:
                    await kube.delete(path)
                except ApiNotFound:
                    return
                output.note(f"waiting for the {JOB} of an earlier demo to end")
                await asyncio.sleep(1.0)
        raise Unavailable(f"the old job {JOB} does not go away; see: muster describe {JOB}")

    asyncio.run(remove())


def _apply(console: Console, file: Path) -> int:
    """Submit the example, with kubectl where there is one; the exit code."""
    shown = os.path.relpath(file)
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        _step(console, f"muster submit {shown}", "kubectl is not there")
        return main.run(["submit", str(file)])
    _step(console, f"kubectl apply -f {shown}", "2 replicas of 4 GPUs that start together")
    return subprocess.run([kubectl, "apply", "-f", str(file)], check=False).returncode


def _follow(session: Session) -> follow.State:
    """Show the job until it has ended, and kill a replica once it has something to resume from."""
    is_killed = False
    uid = asyncio.run(_uid(session))
    with (
        session.api() as api,
        follow.display(output.stderr(), epochs=EPOCHS) as display,
    ):
        for found in follow.states(api, session.namespace, JOB, uid=uid):
            display.show(found)
            if not is_killed and _may_kill(found):
                pod = asyncio.run(_kill(session))
                is_killed = True
                step = found.job["checkpoint"]["step"]
                display.say(
                    f"killed {pod}: the gang will resume from the checkpoint of step {step}"
                )
    return found


async def _uid(session: Session) -> str:
    """Which job we have just applied: the API may still tell of the one before."""
    async with session.kube() as kube:
        found = await kube.get(JOBS.path(session.namespace, JOB))
    return str(found["metadata"]["uid"])


def _may_kill(found: follow.State) -> bool:
    """Whether the first attempt runs, has a verified checkpoint, and has enough left to show."""
    checkpoint = found.job.get("checkpoint") or {}
    is_first = found.job.get("attempt") == 1 and found.phase == "Running"
    return is_first and bool(checkpoint.get("verified")) and len(found.finished_epochs) >= 2


async def _kill(session: Session) -> str:
    """Delete a replica's pod without grace, which kills its processes; its name."""
    pod = wire.pod_name(JOB, 1, VICTIM)
    async with session.kube() as kube:
        await kube.delete(PODS.path(session.namespace, pod), grace_seconds=0)
    return pod


def _failed(session: Session, end: follow.State) -> int:
    """Show the last lines of the job's log and why it ended; the exit code."""
    lines: list[str] = []

    async def read() -> None:
        async with session.kube() as kube:
            await logs.print_logs(
                kube,
                session.namespace,
                JOB,
                logs.Selection(),
                lambda _, replica, line: lines.append(f"[{replica}] {line}"),
            )

    try:
        asyncio.run(read())
    except NotFound as error:
        lines.append(str(error))
    for line in lines[-LAST_LINES:]:
        output.note(line)
    raise errors.Failed(f"{JOB} ended as {end.phase}: {end.job.get('message')}")


def _bill(console: Console, end: follow.State, cost: dict[str, Any]) -> None:
    """The table of epochs, and what the GPUs did besides."""
    epochs = {str(epoch["epoch"]): epoch for epoch in end.epochs}
    drawn = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for heading in ("", "ATTEMPT", "SECONDS", "GPU-SECONDS", "COST", "ACCURACY"):
        drawn.add_column(heading, justify="right" if heading else "left")
    for line in cost["lines"]:
        is_epoch = line["class"] == "epoch"
        epoch = epochs.get(line["key"], {}) if is_epoch else {}
        accuracy = (epoch.get("metrics") or {}).get("accuracy")
        drawn.add_row(
            f"epoch {line['key']}" if is_epoch else pages.line_name(line),
            ", ".join(map(str, epoch.get("attempts") or ())) if is_epoch else "",
            text.seconds(epoch.get("seconds")) if is_epoch else "",
            f"{line['gpu_seconds']:,.1f}",
            usd(line["micro_usd"]),
            f"{accuracy:.1%}" if isinstance(accuracy, float) else "",
            style="" if is_epoch else "dim",
        )
    drawn.add_section()
    drawn.add_row(
        "total", "", "", f"{cost['gpu_seconds']:,.1f}", usd(cost["total_micro_usd"]), style="bold"
    )
    console.print()
    console.print(drawn)
    pages.remarks(console, cost)
    last = end.finished_epochs[-1] if end.finished_epochs else {}
    accuracy = (last.get("metrics") or {}).get("accuracy", 0.0)
    console.print()
    console.print(
        Text(
            f"Succeeded after {end.job.get('attempt')} attempts: "
            f"{accuracy:.1%} of the digits that it never saw are read right.",
            style="bold green",
        )
    )


def _try_next(console: Console) -> None:
    muster = os.path.relpath(Path(sys.executable).parent / "muster")
    console.print("\nThe cluster is still up. Try next:")
    for command, what in (
        (f"export KUBECONFIG=$({muster} local kubeconfig --name {CLUSTER})", ""),
        (f"kubectl get tj; kubectl describe tj {JOB}", "the job as Kubernetes sees it"),
        (f"{muster} describe {JOB}", "attempts, epochs, events"),
        (f"{muster} logs {JOB} --rank 0", "what the second attempt printed"),
        (f"{muster} cost {JOB} --by attempt", "the same bill by attempt"),
        ("make clean-demo", "remove the cluster and the checkpoints"),
    ):
        console.print(Text(f"  {command}") + Text(f"   # {what}" if what else "", style="dim"))


def _step(console: Console, command: str, what: str) -> None:
    console.print(Text(f"$ {command}", style="bold cyan") + Text(f"   # {what}", style="dim"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--clean", action="store_true", help="remove what the demo left")
    sys.exit(errors.told(clean if parser.parse_args().clean else demo))
