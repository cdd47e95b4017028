"""A real HTTP server that takes reports, and fails as it is told to."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from muster.reports import Item, Report, report_of

AT = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)

Answer = tuple[int, bytes]


def now() -> datetime:
    return AT


class FakeApi:
    """Answers reports as it is told to, and keeps what it accepted, each sequence once."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Report]] = []
        self.accepted: dict[int, tuple[Item, ...]] = {}
        self.answer: Callable[[Report, str], Answer] = lambda report, token: self.taken()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                report = report_of(json.loads(body))
                token = self.headers["Authorization"]
                outer.requests.append((self.path, token, report))
                status, answer = outer.answer(report, token)
                if status == 200:
                    outer.accepted.setdefault(report.sequence, report.items)
                if status == 0:  # Accepted, and the answer lost.
                    outer.accepted.setdefault(report.sequence, report.items)
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._handler = Handler
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None

    def taken(self, directive: object = None) -> Answer:
        return 200, json.dumps({"acknowledged": 1, "status": {"directive": directive}}).encode()

    @property
    def items(self) -> list[Item]:
        return [item for sequence in sorted(self.accepted) for item in self.accepted[sequence]]
