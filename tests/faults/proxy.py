"""A proxy between a client and an HTTP server on loopback that does what networks and overloaded servers do.

What happens to a request depends on the seed and on the request alone (method, path and how often it has come), not on
the order in which requests of several threads arrive: a seed means the same faults again.
"""

from __future__ import annotations

import http.client
import random
import re
import socket
import socketserver
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>'
)


class Fault(Enum):
    """What happens to a request."""

    REFUSED = "an answer of 503, not carried out"
    BROKEN_UPLOAD = "the connection breaks in the middle of the request's body"
    FAILED = "carried out, then an answer of 500"
    LOST = "carried out, then the connection breaks before the answer"
    SLOW = "carried out, but answered after the time-out"
    CUT = "carried out, but the connection breaks in the middle of the answer's body"


@dataclass(frozen=True)
class Request:
    """A request, and the how manieth of its kind it is, from 0."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    number: int

    @property
    def kind(self) -> str:
        return kind_of(self.method, self.target)


def kind_of(method: str, target: str) -> str:
    """What is the same in every run: an upload's id is not."""
    parts = urlsplit(target)
    query = [f"{name}={'' if name == 'uploadId' else value}" for name, value in sorted(parse_qsl(parts.query, True))]
    return f"{method} {parts.path}?{'&'.join(query)}"


@dataclass(frozen=True)
class SeededFaults:
    """Each request meets a fault with a probability.

    Attributes:
        seed: Decides which.
        share: The probability of a fault.
        faults: What happens, all as often.
    """

    seed: int
    share: float
    faults: tuple[Fault, ...] = tuple(Fault)

    def __call__(self, request: Request) -> Fault | None:
        chance = random.Random(f"{self.seed} {request.kind} {request.number}")
        return chance.choice(self.faults) if chance.random() < self.share else None


class First:
    """A fault for the first request of a method to a path with these words, and for no other."""

    def __init__(self, method: str, words: str, fault: Fault) -> None:
        self.method, self.words, self.fault = method, words, fault
        self.met = False

    def __call__(self, request: Request) -> Fault | None:
        if self.met or request.method != self.method or self.words not in request.target:
            return None
        self.met = True
        return self.fault


@dataclass
class FaultProxy:
    """Passes requests on to ``upstream``; a context manager.

    Attributes:
        upstream: ``http://127.0.0.1:<port>``.
        decide: What happens to a request; None: nothing. May be exchanged at any time.
        slow_seconds: How late a slow answer comes.
        happened: How often each fault has been.
    """

    upstream: str
    decide: Callable[[Request], Fault | None]
    slow_seconds: float = 1.0
    happened: Counter[Fault] = field(default_factory=Counter)
    endpoint: str = ""

    def __post_init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._under_way = 0
        self._lock = threading.Lock()
        proxy = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                try:
                    while proxy._serve(self.rfile, self.connection):
                        pass
                except (OSError, http.client.HTTPException):
                    return  # the client went away, which clients may

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_until_quiet(self) -> None:
        """Until requests have come to an end that their client has given up: such a one may still be carried out."""
        time.sleep(0.05)
        while self._under_way:
            time.sleep(0.01)

    def _serve(self, reader, connection: socket.socket) -> bool:
        """One request; False: the connection is at its end."""
        line = reader.readline().decode("latin-1").split()
        if len(line) != 3:
            return False
        with self._lock:
            self._under_way += 1
        try:
            return self._answered(line, reader, connection)
        finally:
            with self._lock:
                self._under_way -= 1

    def _answered(self, line: list[str], reader, connection: socket.socket) -> bool:
        headers = http.client.parse_headers(reader)
        length = int(headers.get("Content-Length") or 0)
        with self._lock:
            kind = kind_of(line[0], line[1])
            number = self._numbers[kind]
            self._numbers[kind] += 1
        fault = self.decide(Request(line[0], line[1], dict(headers.items()), b"", number))
        if fault is not None:
            with self._lock:
                self.happened[fault] += 1
        if fault is Fault.BROKEN_UPLOAD:
            reader.read(length // 2)
            return _reset(connection)
        body = reader.read(length)
        if _has_left(connection):
            return False  # a request that is read so late that nobody waits for it any more: see `wait_until_quiet`
        if fault is Fault.REFUSED:
            return _answer(connection, 503, {}, _SLOW_DOWN, line[0])
        status, answered, content = self._pass_on(line[0], line[1], headers, body)
        if fault is Fault.FAILED:
            return _answer(connection, 500, {}, _SLOW_DOWN, line[0])
        if fault is Fault.LOST:
            return _reset(connection)
        if fault is Fault.SLOW:
            time.sleep(self.slow_seconds)
        return _answer(connection, status, answered, content, line[0], cut=fault is Fault.CUT)

    def _pass_on(
        self, method: str, target: str, headers: http.client.HTTPMessage, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        to = urlsplit(self.upstream)
        upstream = http.client.HTTPConnection(to.hostname or "", to.port, timeout=60)
        try:
            upstream.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                if name.lower() != "connection":
                    upstream.putheader(name, value)
            upstream.endheaders(body or None)
            answer = upstream.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            upstream.close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128


def _answer(
    connection: socket.socket, status: int, headers: Mapping[str, str], body: bytes, method: str, *, cut: bool = False
) -> bool:
    kept = {n: v for n, v in headers.items() if not re.fullmatch("(?i)transfer-encoding|connection|content-length", n)}
    given = next((value for name, value in headers.items() if name.lower() == "content-length"), "0")
    kept["Content-Length"] = given if method == "HEAD" else str(len(body))
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}", *(f"{n}: {v}" for n, v in kept.items())]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    if cut:
        connection.sendall(head + body[: len(body) // 2] if body else head[: len(head) // 2])
        return _reset(connection, gently=True)
    connection.sendall(head + body)
    return True


def _has_left(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def _reset(connection: socket.socket, *, gently: bool = False) -> bool:
    """Breaks the connection; ``gently``: what has been sent still arrives."""
    if not gently:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    return False
