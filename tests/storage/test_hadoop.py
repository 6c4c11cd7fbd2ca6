"""Hadoop's spelling of addresses."""

from __future__ import annotations

from statelib.storage.hadoop import hadoop_uri


def test_hadoop_spells_s3_otherwise() -> None:
    assert hadoop_uri("s3://bucket/topic") == "s3a://bucket/topic"
    assert hadoop_uri("/data/topic") == "/data/topic"
