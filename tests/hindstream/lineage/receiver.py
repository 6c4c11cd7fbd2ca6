"""Who takes events over HTTP."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from tests.hindstream.lineage.specified import check_specified

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hindstream.lineage.specified import Event


@contextmanager
def receiver(monkeypatch: Any, status: int = 201) -> Iterator[list[Event]]:
    """Collects what the client of this process sends; in the end, all of it must be as specified."""
    events: list[Event] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/api/v1/lineage"
            events.append(json.loads(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv(
        "OPENLINEAGE__TRANSPORT", json.dumps({"type": "http", "url": f"http://127.0.0.1:{server.server_port}"})
    )
    try:
        yield events
        check_specified(events)
    finally:
        server.shutdown()
        server.server_close()
