"""Real Kafka Streams applications; their topologies are in ``streams-app/src/main/java``, each in its file."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from tests.kafka.java import JavaProcess, java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from tests.kafka.broker import Broker

_HEAP_MB = 256
_ANSWER_SECONDS = 120

Row = dict[str, Any]


def given() -> dict[str, str]:
    """The settings of all applications of this run of the tests."""
    pairs = (pair.partition("=") for pair in os.environ.get("KAFKA_STREAMS_SETTINGS", "").split())
    return {name: value for name, _, value in pairs}


class StreamsApp:
    """An application that runs while the context lasts, and is then stopped in good order.

    Its stores are without caches and it commits every 100 ms, unless ``settings`` say otherwise, or the variable
    ``KAFKA_STREAMS_SETTINGS`` (``NAME=VALUE NAME=VALUE``), which is there for whole runs of the tests. Leaving the
    context raises where the application has failed. To go on where it was, make another with the same arguments; with
    another ``state_dir`` that one restores its stores from the changelogs.

    Args:
        topology: Its name, see ``Topologies.java``.
        broker: Has its topics.
        application_id: Also its group, and what its internal topics begin with.
        state_dir: For its local stores; its log lies beside it.
        topic_prefix: What the names of its topics begin with.
        settings: More of Kafka's settings, and those that the topology's file names (``topology.window.size.ms``).
        jvm: Options of Java.
        kafka_version: Of Kafka Streams; None: that of all applications of this run of the tests.
    """

    def __init__(
        self,
        topology: str,
        broker: Broker,
        application_id: str,
        state_dir: Path,
        *,
        topic_prefix: str = "",
        settings: Mapping[str, str] | None = None,
        jvm: Sequence[str] = (),
        kafka_version: str | None = None,
    ) -> None:
        self._arguments = {
            **broker.java_settings,
            "application.id": application_id,
            "state.dir": str(state_dir),
            "topology.topic.prefix": topic_prefix,
            **given(),
            **(settings or {}),
        }
        self._topology = topology
        self._jvm = jvm
        self._kafka_version = kafka_version
        self._log = state_dir.with_name(f"{state_dir.name}.log")

    def __enter__(self) -> Self:
        arguments = [f"{name}={value}" for name, value in self._arguments.items()]
        main = java(
            "hindstream.testbed.StreamsApp",
            self._topology,
            *arguments,
            heap_mb=_HEAP_MB,
            options=self._jvm,
            kafka_version=self._kafka_version,
        )
        self._process = JavaProcess(main, self._log, stdout=subprocess.PIPE)
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error:
            self.kill()
        else:
            self.stop()

    def catch_up(self) -> None:
        """Waits until it has processed and committed all that its topics hold."""
        self._ask("catch-up")

    def dump(self, store: str) -> list[Row]:
        """All entries of a key-value, window or session store, in the store's order.

        A row has ``key`` and ``value``; ``timestamp_ms`` unless it is a session; windows and sessions have ``start_ms``
        and ``end_ms``.
        """
        return self._ask("dump", store)

    def versions(self, store: str, *keys: str) -> list[Row]:
        """The versions of some keys that a versioned store gives, oldest first: ``timestamp_ms``, ``valid_to_ms``."""
        return self._ask("versions", store, *keys)

    def restored(self) -> dict[str, int]:
        """Of how many records each store has been restored that is restored from a changelog."""
        return {row["store"]: row["records"] for row in self._ask("restored")}

    def stop(self) -> None:
        """Stops it: what it has processed is committed."""
        code = self._process.stop()
        self._reader.join()
        if code != 0:
            raise RuntimeError(f"the application {self._topology} has failed; {self._process.said()}")

    def kill(self) -> None:
        """Ends it at once, as a crash does."""
        self._process.kill()
        self._reader.join()

    def _ask(self, *command: str) -> list[Row]:
        pipe = self._process.process.stdin
        with suppress(BrokenPipeError):  # it has ended, which the answer tells
            pipe.write(json.dumps(command).encode() + b"\n")
            pipe.flush()
        rows = []
        while True:
            row = self._answer(command)
            if "error" in row:
                raise RuntimeError(f"{command}: {row['error']}; {self._process.said()}")
            if "done" in row:
                return rows
            rows.append(row)

    def _answer(self, command: tuple[str, ...]) -> Row:
        try:
            line = self._lines.get(timeout=_ANSWER_SECONDS)
        except Empty:
            line = b""
        if not line:
            raise RuntimeError(f"{command}: no answer; {self._process.said()}")
        return json.loads(line)

    def _read(self) -> None:
        for line in self._process.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")
