"""What is done on every host: here, and in every slot of a cluster at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hindstream.spark.placement import hosts
from hindstream.spark.placement.hosts import clean_hosts, in_every_slot, on_every_host, settled_slots
from statelib.errors.kinds import ConfigurationError, RetryableError
from tests.hindstream.spark.orders import make_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_without_a_cluster_it_is_done_here(tmp_path: Path) -> None:
    assert [pid for _, pid in on_every_host(make_settings(tmp_path), os.getpid)] == [os.getpid()]


def test_a_job_without_commits_has_nothing_to_clean(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no commits"):
        clean_hosts("nobody", make_settings(tmp_path))


@pytest.mark.spark
def test_every_slot_does_it(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local Spark has the slots of a cluster, in one host."""
    monkeypatch.setattr(hosts, "_SETTLED_S", 0.2)
    context = spark.sparkContext
    slots = in_every_slot(context, settled_slots(context), os.getpid)
    processes = {slot.result for slot in slots}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert {slot.executor for slot in slots} == {f"{slots[0].host}/driver"}


@pytest.mark.spark
def test_what_spark_cannot_do_may_be_tried_again(spark: SparkSession) -> None:
    def fails() -> None:
        raise OSError(5, "the disk is broken")

    with pytest.raises(RetryableError, match="Spark has given up"):
        in_every_slot(spark.sparkContext, 1, fails)
