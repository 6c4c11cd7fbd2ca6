"""What is done on every host: here, and in every slot of a cluster at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from spark_jobs import hosts
from spark_jobs.hosts import clean_hosts, on_every_host
from statelib.errors import ConfigurationError, RetryableError
from tests.spark_jobs.orders import make_settings

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
    processes = [pid for _, pid in hosts._in_every_slot(spark.sparkContext, os.getpid)]
    assert len(set(processes)) == 2
    assert os.getpid() not in processes


@pytest.mark.spark
def test_what_spark_cannot_do_may_be_tried_again(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "_slots", lambda _: 1)

    def fails() -> None:
        raise OSError(5, "the disk is broken")

    with pytest.raises(RetryableError, match="Spark has given up"):
        hosts._in_every_slot(spark.sparkContext, fails)
