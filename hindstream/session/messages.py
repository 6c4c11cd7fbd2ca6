"""What a command and the session say to each other: one JSON object a packet.

::

    client                                   server
    {"do": "run", "argv": ..., ...} + fds 0, 1, 2  ->
                                       <-    {"pid": 4711}          the child that is the command now, or
                                       <-    {"refused": "..."}     the command has to run in its own process
                                       <-    {"exit": 0}            it has ended; minus a signal's number: by that
    {"do": "status"}                   ->
    {"do": "stop"}                     ->
                                       <-    {"pid": ..., "commands": ..., ...}

A client that goes away takes its command with it.
"""

from __future__ import annotations

import json
import socket
from typing import Any

LARGEST = 1 << 20
"""Bytes of a packet; Linux sends about 200 KiB, and a command with more arguments and variables runs by itself."""


def connect(path: str) -> socket.socket | None:
    """A connection to the session; None: nobody listens there."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection


def send(connection: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> bool:
    """Sends a message; False: the other side is gone, or it is too large."""
    try:
        socket.send_fds(connection, [json.dumps(message).encode()], descriptors)
    except OSError:
        return False
    return True


def receive(connection: socket.socket, most_descriptors: int = 0) -> tuple[dict[str, Any] | None, list[int]]:
    """The next message and the descriptors that came along; None: the other side is gone, or does not speak so."""
    try:
        data, descriptors, _, _ = socket.recv_fds(connection, LARGEST, most_descriptors)
    except OSError:
        return None, []
    try:
        message = json.loads(data)
    except ValueError:
        message = None
    return (message if isinstance(message, dict) else None), list(descriptors)
