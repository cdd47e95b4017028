"""The official download, believed only when its published SHA-256 is right."""

import hashlib
import json
import re
import tarfile
import urllib.request
from pathlib import Path
from typing import IO, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit

from muster.errors import Unavailable
from muster_local.places import machine
from muster_local.progress import Tell
from muster_local.versions import Project

_SECONDS: Final = 10.0
"""Without a word from the server; a download that goes on may take as long as it likes."""
_CHUNK: Final = 1 << 20
_MAX_SUMS: Final = 4 << 20
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def download(project: Project, component: str, draft: Path, tell: Tell) -> None:
    """Download *component* to *draft*. Raises `Unavailable`, and leaves no draft that is wrong."""
    operating_system, processor = machine()
    words = {
        "version": project.version,
        "os": operating_system,
        "arch": processor,
        "component": component,
    }
    url = project.download.format(**words)
    step = f"downloading {component} {project.version}"
    tell(step)
    fetched = draft.with_name(f"{draft.name}.download")
    try:
        want = published_sha256(
            _text(project.checksum.format(**words)), urlsplit(url).path.rsplit("/", 1)[-1]
        )
        got = _save(url, fetched, lambda done: tell(f"{step}\n{done}"))
        if got != want:
            raise Unavailable(f"{url} has SHA-256 {got}, but {want} is published")
        if project.member is None:
            fetched.replace(draft)
        else:
            _extract(fetched, project.member.format(**words), draft)
    except (OSError, tarfile.TarError, KeyError) as error:
        raise Unavailable(f"{url}: {_why(error)}") from error
    finally:
        fetched.unlink(missing_ok=True)


def published_sha256(text: str, file: str) -> str:
    """The sum of *file* in what its publisher says: a bare sum, a list, or a GitHub release.

    Raises `Unavailable` when it is not there.
    """
    if text.lstrip().startswith("{"):
        assets = json.loads(text).get("assets") or ()
        sums = {each.get("name"): str(each.get("digest") or "") for each in assets}
        found = _SHA256.search(sums.get(file, ""))
    else:
        rows = [line.split() for line in text.splitlines() if line.strip()]
        found = next(
            (_SHA256.fullmatch(row[0]) for row in rows if row[1:] in ([], [file], [f"*{file}"])),
            None,
        )
    if found is None:
        raise Unavailable(f"no SHA-256 of {file} is published")
    return found[0]


def _why(error: Exception) -> object:
    """An answer by its status; a broken connection by what the system says of it."""
    return error if isinstance(error, HTTPError) else getattr(error, "reason", error)


def _text(url: str) -> str:
    with _open(url) as answer:
        return str(answer.read(_MAX_SUMS), errors="replace")


def _save(url: str, path: Path, tell: Tell) -> str:
    """Write what is at *url* to *path*; its SHA-256."""
    digest = hashlib.sha256()
    with _open(url) as answer, path.open("wb") as file:
        total = int(answer.headers.get("Content-Length") or 0)
        done = 0
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            tell(f"{done >> 20} of {total >> 20} MiB" if total else f"{done >> 20} MiB")
        if total and done < total:
            raise OSError(f"broke off after {done} of {total} bytes")
    return digest.hexdigest()


def _open(url: str) -> "urllib.request._UrlopenRet":
    # The addresses are those of versions.toml, never a user's.
    return urllib.request.urlopen(url, timeout=_SECONDS)  # noqa: S310


def _extract(archive: Path, member: str, draft: Path) -> None:
    with tarfile.open(archive) as tar:
        source: IO[bytes] | None = tar.extractfile(member)
        if source is None:
            raise KeyError(f"{member} is not a file in the archive")
        with source, draft.open("wb") as target:
            while chunk := source.read(_CHUNK):
                target.write(chunk)
