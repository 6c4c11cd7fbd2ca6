"""The bar of a Spark stage: where it is drawn."""

from __future__ import annotations

import io
import os
import pty
import threading
from contextlib import contextmanager, redirect_stderr, suppress
from typing import TYPE_CHECKING, TextIO

import pytest

from hindstream.spark.tasks.progress import StageProgress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def run_a_stage(spark: SparkSession, stderr: TextIO) -> None:
    with (
        redirect_stderr(stderr),
        StageProgress(spark.sparkContext, "a-group", "orders, stage 1", tasks=2, has_failed=lambda: False),
    ):
        spark.sparkContext.parallelize([1, 2], 2).count()


@contextmanager
def terminal(seen: bytearray) -> Iterator[TextIO]:
    """A terminal whose screen is read while it is written to: it holds some 4 KiB, then writers wait."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"this machine has no terminals: {error}")

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
