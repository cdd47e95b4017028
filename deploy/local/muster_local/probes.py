"""Whether something answers, asked in the cheapest way."""

import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_SECONDS: Final = 2.0


def answers(url: str, path: str, *, pki: Path | None = None) -> bool:
    """Whether a GET of *path* at *url* is answered with 200.

    With *pki* the server is checked against that authority and asked with the bootstrap identity;
    without, an https server is not checked at all: the components make their own certificates.
    """
    try:
        connection = _connection(url, pki)
    except OSError:
        return False
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _connection(url: str, pki: Path | None) -> HTTPConnection:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port, timeout=_SECONDS)
    if pki is None:
        context = ssl._create_unverified_context()  # noqa: S323 -- only its being there is asked
    else:
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "bootstrap.crt", pki / "bootstrap.key")
    return HTTPSConnection(host, parts.port, timeout=_SECONDS, context=context)
