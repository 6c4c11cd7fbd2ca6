"""The bar of a Spark stage: where it is drawn."""

from __future__ import annotations

import io
import os
import socket
import threading
import time
from contextlib import contextmanager, redirect_stderr, suppress
from typing import TYPE_CHECKING, TextIO

import pytest

from hindstream.console.progress import Progress
from hindstream.spark.session.compiling import COMPILING
from hindstream.spark.tasks.progress import StageProgress
from hindstream.spark.tasks.told import Listener, Told, tell, telling
from tests.terminal import opened_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def tell_twice(part: Iterator[int], listener: Listener | None) -> Iterator[int]:
    """Runs in a worker."""
    for task in part:
        with telling(listener, task):
            for _ in range(2):
                tell(100 * task)
        yield task


def test_tasks_tell_of_their_records_while_they_run(spark: SparkSession) -> None:
    with Told(spark.sparkContext) as told:
        listener = told.listener
        assert listener is not None
        numbers = spark.sparkContext.parallelize([1, 2], 2)
        assert numbers.mapPartitions(lambda part: tell_twice(part, listener)).collect() == [1, 2]
        waits_until = time.monotonic() + 5
        while told.records() < 600 and time.monotonic() < waits_until:
            time.sleep(0.01)
        assert told.records() == 600
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for message in (b"other-key 1 999", f"{listener.key} x 5".encode(), b"\xff" * 300):
                stranger.sendto(message, (listener.host, listener.port))
        time.sleep(0.05)
        assert told.records() == 600


def test_a_stage_says_while_operators_are_compiled(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "compiling"
    monkeypatch.setattr("hindstream.spark.tasks.progress.mark_of", lambda _: mark)
    labels: list[str] = []
    monkeypatch.setattr(Progress, "label", lambda _, text: labels.append(text))
    mark.touch()
    with StageProgress(spark.sparkContext, "a-group", "stage", tasks=2, has_failed=lambda: False):
        for expected in (f"stage, {COMPILING}", "stage"):
            waits_until = time.monotonic() + 20
            while labels[-1:] != [expected] and time.monotonic() < waits_until:
                time.sleep(0.01)
            assert labels[-1:] == [expected]
            mark.unlink(missing_ok=True)


def test_where_nobody_listens_nothing_is_told() -> None:
    tell(5)
    with telling(None, 1):
        tell(5)
    with telling(Listener("no-such-host.invalid", 9, "key"), 1):
        tell(5)


def run_a_stage(spark: SparkSession, stderr: TextIO) -> None:
    with (
        redirect_stderr(stderr),
        StageProgress(spark.sparkContext, "a-group", "orders, stage 1", tasks=2, has_failed=lambda: False),
    ):
        spark.sparkContext.parallelize([1, 2], 2).count()


@contextmanager
def terminal(seen: bytearray) -> Iterator[TextIO]:
    """A terminal whose screen is read while it is written to: it holds some 4 KiB, then writers wait."""
    ours, theirs = opened_terminal()

    def read() -> None:
        with suppress(OSError):  # when the writers are gone
            while piece := os.read(ours, 4096):
                seen.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
            yield terminal
    finally:
        reader.join()
        os.close(ours)


def test_a_terminal_has_a_bar(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    seen = bytearray()
    with terminal(seen) as screen:
        run_a_stage(spark, screen)
    assert b"orders, stage 1" in seen


def test_a_terminal_takes_more_than_it_holds() -> None:
    seen = bytearray()
    with terminal(seen) as screen:
        screen.write("x" * 100_000)
    assert len(seen) == 100_000


def test_a_standard_error_that_is_redirected_has_none(spark: SparkSession) -> None:
    log = io.StringIO()
    run_a_stage(spark, log)
    assert log.getvalue() == ""
