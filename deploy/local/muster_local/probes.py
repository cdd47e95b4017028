"""Whether something answers, asked in the cheapest way."""

import os
import socket
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


def answers_on_socket(path: Path, request: str) -> bool:
    """Whether a GET of *request* is answered with 200 by whoever listens on the socket *path*."""
    connection = _SocketConnection(path)
    try:
        connection.request("GET", request)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


class _SocketConnection(HTTPConnection):
    """HTTP to a socket in the file system."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect by way of the directory: a socket's own address holds no more than 107 bytes."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.sock.connect(f"/proc/self/fd/{directory}/{self._path.name}")
        finally:
            os.close(directory)


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
