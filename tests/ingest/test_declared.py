"""What a load was asked for, kept for the next one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.declared import declaration_of, topic_declared
from statelib.job.lake_topic import LakeTopic
from statelib.serdes.json import JsonSerde

if TYPE_CHECKING:
    from pathlib import Path


def no_registry(url: str) -> Any:
    raise AssertionError(url)


def test_the_next_load_asks_for_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = LakeTopic(
        "t", ("data/*.csv", "s3://lake/x", "delta:tables/y@3"), key="{a}-{b}", value=("c", "d"), timestamp="at",
        timezone="America/New_York", types={"c": "string"}, partitions=7, delimiter=";", key_serde="string",
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    kept = json.loads(json.dumps(declaration_of(topic)))
    monkeypatch.chdir("/")
    again = topic_declared(kept, no_registry)
    assert again.sources == (f"{tmp_path}/data/*.csv", "s3://lake/x", f"delta:{tmp_path}/tables/y@3")
    assert declaration_of(again) == kept


def test_a_serde_that_is_code_is_not_replaced_by_the_default() -> None:
    kept = declaration_of(LakeTopic("t", "/data", key="k", timestamp="at", key_serde=JsonSerde(pa.int64())))
    with pytest.raises(ConfigurationError, match="whose key_serde no record of it keeps") as caught:
        topic_declared(kept, no_registry)
    assert "FILE.py:NAME" in str(caught.value.next_step)
