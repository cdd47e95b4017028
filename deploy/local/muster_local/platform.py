"""Operator, API and recorder as processes of a local cluster."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from muster import wire
from muster_local.component import Command
from muster_local.launch import Recipe
from muster_local.ports import LOOPBACK
from muster_local.probes import answers
from muster_local.state import API

OPERATOR: Final = "operator"
RECORDER: Final = "recorder"
ACCOUNTS: Final[Mapping[str, str]] = {
    OPERATOR: "muster-operator",
    API: "muster-api",
    RECORDER: "muster-recorder",
}
"""The service account of each."""
_KIND: Final = "platform"


def account_kubeconfig(directory: Path, account: str) -> Path:
    """The kubeconfig with which a component speaks as its service account."""
    return directory / "accounts" / f"{account}.kubeconfig"


def api(directory: Path, *, operator_url: str = "") -> Recipe:
    """The REST API; it reads what the operator sees at *operator_url*."""
    settings = {**_database(directory), "MUSTER_OPERATOR_URL": operator_url}
    return _recipe(API, "muster_api", directory, settings)


def recorder(directory: Path) -> Recipe:
    """Keeps the history and the bill."""
    return _recipe(RECORDER, "muster_api.recorder", directory, _database(directory))


def operator(
    directory: Path, *, api_url: str, has_scheduler: bool, port: int | None = None
) -> Recipe:
    """Places jobs and carries them out; replicas report to *api_url*. The API was told *port*."""
    settings = {
        wire.ENV_API_URL: api_url,
        "MUSTER_HAS_SCHEDULER": "true" if has_scheduler else "false",
        "MUSTER_DECISIONS_FOLDER": str(directory / "decisions"),
    }
    return _recipe(OPERATOR, "muster_operator", directory, settings, port)


def _recipe(
    name: str,
    module: str,
    directory: Path,
    settings: Mapping[str, str],
    port: int | None = None,
) -> Recipe:
    kubeconfig = account_kubeconfig(directory, ACCOUNTS[name])

    def command(port: int) -> Command:
        environment = {
            **settings,
            "KUBECONFIG": str(kubeconfig),
            "MUSTER_HTTP_HOST": LOOPBACK,
            "MUSTER_HTTP_PORT": str(port),
        }
        argv = (sys.executable, "-P", "-m", module)
        return Command(name, _KIND, argv, environment, url=f"http://{LOOPBACK}:{port}")

    return Recipe(
        command, is_ready=lambda component: answers(component.url or "", "/readyz"), port=port
    )


def _database(directory: Path) -> dict[str, str]:
    folder = directory / "database"
    folder.mkdir(mode=0o700, exist_ok=True)
    return {"MUSTER_DATABASE_URL": f"sqlite+aiosqlite:///{folder / 'muster.db'}"}
