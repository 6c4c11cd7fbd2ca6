"""The bar of a Spark stage: where it is drawn."""

from __future__ import annotations

import io
import os
import pty
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, TextIO

import pytest

from spark_jobs.progress import StageProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def run_a_stage(spark: SparkSession, stderr: TextIO) -> None:
    with (
        redirect_stderr(stderr),
        StageProgress(spark.sparkContext, "a-group", "orders, stage 1", tasks=2, has_failed=lambda: False),
    ):
        spark.sparkContext.parallelize([1, 2], 2).count()


def test_a_terminal_has_a_bar(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb") as screen, os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        run_a_stage(spark, terminal)
        assert b"orders, stage 1" in os.read(screen.fileno(), 100_000)


def test_a_standard_error_that_is_redirected_has_none(spark: SparkSession) -> None:
    log = io.StringIO()
    run_a_stage(spark, log)
    assert log.getvalue() == ""
