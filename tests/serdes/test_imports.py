"""Nobody pays for a library of serdes that are not used."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("used", "unused"),
    [
        (
            "statelib.JsonSerde, statelib.UuidSerde, statelib.open_state",
            {"fastavro", "google.protobuf", "confluent_kafka"},
        ),
        ("statelib.AvroSerde('long').arrow_type", {"fastavro", "google.protobuf", "confluent_kafka"}),
        ("statelib.ProtobufSerde", {"fastavro", "confluent_kafka", "statelib.serdes.avro.kernel"}),
    ],
)
def test_libraries_are_imported_where_they_are_used(used: str, unused: set[str]) -> None:
    code = f"import statelib, sys; {used}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert unused & set(loaded) == set()
