"""Whether containers can have mounts of their own on this machine, found out by trying."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from muster_local.nodes.instance import Instance, prepare
from muster_local.nodes.launcher.launch import MESSAGE, Launch, Mount

_TRY_SECONDS: Final = 20.0


async def refused_because() -> str:
    """Why mount namespaces are refused here; empty where they work.

    It launches a container with what a usual one has: a volume whose mount point is missing on the
    machine, a file in /dev, a host name.
    """
    with tempfile.TemporaryDirectory(prefix="muster-nodes-") as directory:
        run = Path(directory) / "probe" / "0"
        run.mkdir(parents=True)
        prepare(run)
        volume = Path(directory) / "volume"
        volume.mkdir()
        target = "/var/run/secrets/muster.dev/probe"
        launch = Launch(
            ("/bin/sh", "-c", f"test -d {target}"),
            {},
            "/",
            mounts=(
                Mount(str(volume), target, read_only=True),
                Mount(str(run / MESSAGE), "/dev/termination-log"),
            ),
            hostname="probe",
        )
        instance = Instance.spawn(run, launch)
        try:
            async with asyncio.timeout(_TRY_SECONDS):
                how = await instance.wait()
        except TimeoutError:
            instance.destroy()
            await instance.wait()
            return "trying one took too long"
    if how.code == 0:
        return ""
    return how.error or "a volume was mounted and could not be seen"
