"""What the start of every process of this package does: log, read settings, migrate."""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from muster.errors import MusterError
from muster_api.settings import ApiSettings, RecorderSettings, read
from muster_db.migrate import upgrade

_log = logging.getLogger(__name__)
T = TypeVar("T", ApiSettings, RecorderSettings)


def start(kind: type[T], serve: Callable[[T], Coroutine[Any, Any, None]]) -> int:
    """Run a process with its settings; gives its exit code, 2 for an error said in one line."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    try:
        settings = read(kind, os.environ)
        upgrade(settings.database_url)
        asyncio.run(serve(settings))
    except MusterError as error:
        _log.error("%s", error)
        return 2
    except ExceptionGroup as group:
        # Of tasks that ran side by side.
        expected, defects = group.split(MusterError)
        if defects is not None:
            raise
        for each in expected.exceptions if expected is not None else ():
            _log.error("%s", each)
        return 2
    return 0
