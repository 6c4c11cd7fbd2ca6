from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from statelib import (
    AvroSerde,
    JsonSerde,
    ProtobufSerde,
    SessionWindowedSerde,
    TimeWindowedSerde,
    UuidSerde,
)
from statelib.described.description import Described
from statelib.described.stored_values import described_serde, stored_aggregates
from statelib.documents.topologies import StoreDescription
from statelib.errors.kinds import ConfigurationError
from statelib.serdes import serde_for


def test_serdes_are_known_by_what_they_say() -> None:
    struct = pa.struct([("a", pa.int64())])
    assert described_serde(JsonSerde(struct).describe(), struct, of="values") == JsonSerde(struct)
    assert described_serde(serde_for(struct).describe(), struct, of="values") == serde_for(struct)
    assert described_serde(None, pa.string(), of="values") == serde_for(pa.string())
    with pytest.raises(ConfigurationError, match="the job's own serde.*leave these columns out"):
        described_serde({"serde": "mine", "type": "string"}, pa.string(), of="values")


CLICKS = Path(__file__).parents[1] / "serdes" / "data" / "shop.desc"


@pytest.mark.parametrize(
    "serde",
    [
        JsonSerde(pa.list_(pa.int64())),
        UuidSerde(),
        TimeWindowedSerde(serde_for(pa.int32()), 5),
        SessionWindowedSerde(UuidSerde()),
        AvroSerde('{"type": "array", "items": "long"}', writer_schema='{"type": "array", "items": "int"}'),
        ProtobufSerde(CLICKS, "shop.Click"),
    ],
    ids=lambda serde: type(serde).__name__,
)
def test_a_serde_whose_description_suffices_is_known_by_it(serde: Any) -> None:
    description = json.loads(json.dumps(serde.describe()))
    again = described_serde(description, serde.arrow_type, of="values")
    assert type(again) is type(serde)
    assert again.describe() == serde.describe()
    with pytest.raises(ConfigurationError, match="the job's own serde"):
        described_serde({**description, "wire_format": "schema-registry"}, serde.arrow_type, of="values")
    with pytest.raises(ConfigurationError, match="the job's own serde"):
        described_serde(description, pa.decimal128(3), of="values")


def test_a_description_without_rows_is_told_where_they_are_needed() -> None:
    facts = StoreDescription(
        name="s", kind="window", node="n", sub_topology=0, families=("s",), settings={}, arrow_schema=""
    )
    decode = stored_aggregates(Described(facts, pa.schema([("key", pa.string()), ("value", pa.int64())]), {}, "kip"))
    with pytest.raises(ConfigurationError, match="does not say how its values are stored"):
        decode(pa.array([b""]))
