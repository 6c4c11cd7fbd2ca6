"""Where Spark is asked to run tasks: it may do without."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JError

from hindstream.spark.tasks.locations import collect_placed, executor_locations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession


def test_names_of_executors_become_locations() -> None:
    assert executor_locations(()) == ()
    assert executor_locations(("10.0.0.1/0", "a-host/driver", "fe80::1/12")) == (
        "executor_10.0.0.1_0",
        "executor_a-host_driver",
        "executor_fe80::1_12",
    )


@pytest.mark.spark
def test_tasks_of_executors_that_are_not_there_run_elsewhere(spark: SparkSession) -> None:
    """At once, though Spark would wait for executors that are alive."""

    def doubled(items: Iterable[int]) -> Iterator[int]:
        yield from (2 * item for item in items)

    gone, other = ("executor_nowhere_7",), ("executor_nowhere_8", "executor_elsewhere_9")
    items = [(1, ()), (2, gone), (3, gone), (4, other), (5, ())]
    assert sorted(collect_placed(spark.sparkContext, items, doubled)) == [2, 4, 6, 8, 10]


@pytest.mark.spark
def test_one_failure_ends_all(spark: SparkSession) -> None:
    def fails_or_sleeps(items: Iterable[int]) -> Iterator[int]:
        for item in items:
            if item == 0:
                raise ValueError("item 0 cannot be done")
            time.sleep(600)
            yield item

    context = spark.sparkContext
    context.setJobGroup("one-failure", "test")
    try:
        with pytest.raises(Py4JError, match="item 0 cannot be done"):
            collect_placed(context, [(0, ("executor_a_1",)), (1, ("executor_b_2",))], fails_or_sleeps)
    finally:
        context._jsc.clearJobGroup()  # type: ignore[union-attr]
