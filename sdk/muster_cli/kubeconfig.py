"""What a kubeconfig says about the current context: the server, the namespace and a plain token.

Read here in a few milliseconds, because the full client behind `muster_kube` takes a second to
import and most commands need no more than this. Credentials that have to be worked out (exec
plugins, client certificates, OIDC) are left to `muster_kube`; see `Access.needs_client`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class Access:
    """The current context of a kubeconfig."""

    context: str
    server: str
    namespace: str
    token: str | None
    """A bearer token that is written down, in the file or in one that it names."""
    needs_client: bool
    """Whether the credentials have to be worked out by the Kubernetes client."""


def files(chosen: Path | None, environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """The kubeconfig files by kubectl's rule: the one chosen, else KUBECONFIG, else the user's.

    Raises `InvalidSpec` for a chosen file that is missing: that is a typing error, not an absence.
    """
    if chosen is not None:
        if not chosen.is_file():
            raise InvalidSpec("--kubeconfig", f"{chosen} is not a file")
        return (chosen,)
    named = environ.get("KUBECONFIG")
    if named:
        return tuple(Path(p) for p in named.split(os.pathsep) if p and Path(p).is_file())
    own = home / ".kube" / "config"
    return (own,) if own.is_file() else ()


def read(paths: tuple[Path, ...], context: str | None = None) -> Access | None:
    """The access that *context*, else the current one, gives; None where none is set."""
    configs = [(path, _load(path)) for path in paths]
    name = context or next(
        (str(c["current-context"]) for _, c in configs if c.get("current-context")), None
    )
    if name is None:
        return None
    chosen = _find(configs, "contexts", name)
    if chosen is None:
        known = sorted(
            {str(entry.get("name")) for _, c in configs for entry in c.get("contexts") or ()}
        )
        raise InvalidSpec(
            "--context", f"there is no context {name!r}; known are {', '.join(known) or 'none'}"
        )
    inner = chosen[1].get("context") or {}
    cluster = _find(configs, "clusters", str(inner.get("cluster")))
    user = _find(configs, "users", str(inner.get("user")))
    if cluster is None:
        raise InvalidSpec(
            "kubeconfig",
            f"context {name!r} names the cluster {inner.get('cluster')!r}, which is not there",
        )
    token = None if user is None else _token(user[0], user[1].get("user") or {})
    return Access(
        context=name,
        server=str((cluster[1].get("cluster") or {}).get("server") or "").rstrip("/"),
        namespace=str(inner.get("namespace") or "default"),
        token=token,
        needs_client=token is None and user is not None,
    )


def _load(path: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise InvalidSpec("kubeconfig", f"{path} cannot be read: {error}") from error
    if config is not None and not isinstance(config, dict):
        raise InvalidSpec("kubeconfig", f"{path} is not a kubeconfig")
    return config or {}


def _find(
    configs: list[tuple[Path, dict[str, Any]]], section: str, name: str
) -> tuple[Path, dict[str, Any]] | None:
    """The first entry called *name*, and the file that it is from: earlier files win."""
    for path, config in configs:
        for entry in config.get(section) or ():
            if entry.get("name") == name:
                return path, entry
    return None


def _token(path: Path, user: Mapping[str, Any]) -> str | None:
    if named := user.get("tokenFile"):
        file = path.parent / str(named)
        try:
            return file.read_text().strip()
        except OSError as error:
            raise InvalidSpec(
                "kubeconfig", f"the token file {file} cannot be read: {error}"
            ) from error
    token = user.get("token")
    return str(token) if token else None
