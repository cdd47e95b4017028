"""`python -m muster_operator`: the operator as a process."""

import asyncio
import gc
import signal
import sys

from muster.errors import InvalidSpec, MusterError
from muster_operator.run import run
from muster_operator.settings import Settings, settings_from
from muster_operator.telling import set_up

_BAD_INPUT = 2
_UNREACHABLE = 3
_ALLOCATIONS = 50_000
"""New objects after which the youngest are looked through for garbage."""


def main() -> int:
    """Run until SIGTERM or SIGINT; the exit status, with one line on standard error if not 0."""
    try:
        settings = settings_from()
    except InvalidSpec as error:
        return _complain(error, _BAD_INPUT)
    set_up(settings.log_level)
    # Thousands of pods are long-lived dictionaries: looking through them over and over costs more
    # than it ever frees.
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 20, 100)
    try:
        asyncio.run(_serve(settings))
    except MusterError as error:
        return _complain(error, _UNREACHABLE)
    return 0


def _complain(error: MusterError, status: int) -> int:
    sys.stderr.write(f"muster-operator: {error}\n")
    return status


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Not `loop.add_signal_handler`: Kopf would replace it.
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    await run(settings, stop=stop)


if __name__ == "__main__":
    sys.exit(main())
