"""Who may speak to the cluster's API: kubeconfigs, and the tokens in them."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from muster import wire
from muster_kube import Kube
from muster_local.certificates import Client

ADMIN: Final = "muster-admin"
"""The service account of the person at this machine; `charts/muster/files` binds its rights."""
_TOKEN_SECONDS: Final = 365 * 24 * 3600


def certificate_kubeconfig(pki: Path, client: Client, url: str, cluster: str) -> dict[str, Any]:
    """A kubeconfig by which *client* speaks with its certificate."""
    user = {
        "client-certificate-data": _base64(pki / f"{client.file}.crt"),
        "client-key-data": _base64(pki / f"{client.file}.key"),
    }
    return _kubeconfig(pki, url, cluster, client.user, user)


def token_kubeconfig(
    pki: Path, url: str, cluster: str, account: str, user: Mapping[str, str]
) -> dict[str, Any]:
    """A kubeconfig by which a service account speaks; *user* has its `token` or `tokenFile`."""
    return _kubeconfig(pki, url, cluster, account, dict(user))


async def token_of(kube: Kube, account: str, *, namespace: str = wire.SYSTEM_NAMESPACE) -> str:
    """A new token of a service account for the API server's own audience. Raises an `ApiError`."""
    answer = await kube.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_SECONDS},
        },
    )
    return str(answer["status"]["token"])


def write_kubeconfig(path: Path, content: Mapping[str, Any]) -> None:
    """Replace the kubeconfig at *path*."""
    write_secret(path, yaml.safe_dump(dict(content), sort_keys=False))


def write_secret(path: Path, text: str) -> None:
    """Replace the file at *path*, which only its owner may read, in one step."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    beside.replace(path)


def _kubeconfig(
    pki: Path, url: str, cluster: str, user: str, credentials: dict[str, str]
) -> dict[str, Any]:
    context = f"muster-{cluster}"
    authority = _base64(pki / "ca.crt")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [
            {
                "name": context,
                "cluster": {"server": url, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": user, "user": credentials}],
        "contexts": [
            {
                "name": context,
                "context": {"cluster": context, "user": user, "namespace": "default"},
            }
        ],
    }


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
