"""The thread in which copies are made while the process goes on."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest

from hindstream.spark.tasks.background import Background
from statelib.errors.kinds import RetryableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def background() -> Iterator[Background]:
    made = Background("standbys")
    yield made
    made.wait()


def test_what_is_asked_for_is_done(background: Background) -> None:
    done: list[str] = []
    background.wait()
    background.ask("a", lambda: done.append("a"))
    background.wait()
    background.ask("b", lambda: done.append("b"))
    background.wait()
    assert done == ["a", "b"]


def test_of_several_that_wait_for_one_job_the_last_is_done(background: Background) -> None:
    done, begun, goes_on = list[int](), threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        goes_on.wait()
        done.append(0)

    background.ask("job", first)
    begun.wait()
    for number in (1, 2, 3):
        background.ask("job", lambda number=number: done.append(number))  # type: ignore[misc]
    goes_on.set()
    background.wait()
    assert done == [0, 3]


def test_an_error_is_a_warning(background: Background, caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    def fails() -> None:
        raise RetryableError("the warehouse does not answer")

    with caplog.at_level(logging.WARNING):
        background.ask("visits", fails)
        background.wait()
    assert "visits: standbys in the background: the warehouse does not answer" in caplog.text
    background.ask("visits", lambda: done.append("later"))
    background.wait()
    assert done == ["later"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_after_a_defect_others_are_done(background: Background) -> None:
    def is_defect() -> None:
        raise AssertionError("a defect")

    done: list[str] = []
    background.ask("a", is_defect)
    background.wait()
    background.ask("a", lambda: done.append("a"))
    background.wait()
    assert done == ["a"]
    for thread in threading.enumerate():  # the one that has failed may still be at telling it
        if thread.name == "standbys":
            thread.join()


@pytest.mark.spark
def test_no_turn_begins_while_it_is_held(background: Background, spark: SparkSession) -> None:
    context, pools, is_held = spark.sparkContext, list[str | None](), threading.Event()
    turned = threading.Event()

    def do() -> None:
        is_held.wait()
        with background.turn(context):
            pools.append(context.getLocalProperty("spark.scheduler.pool"))
        pools.append(context.getLocalProperty("spark.scheduler.pool"))
        turned.set()

    background.ask("a", do)
    with background.held():
        is_held.set()
        assert not turned.wait(0.3)
        with background.turn(context):  # another thread's own is never held
            assert context.parallelize([1], 1).count() == 1
    assert turned.wait(10)
    assert pools == ["standbys", None]
