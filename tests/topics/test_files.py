from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from statelib.topics.files import ArchiveFile, iso_timestamp

FILE = ArchiveFile(
    path="partition=1/00000000000000000007-a.parquet",
    partition=1,
    rows=3,
    size_bytes=1234,
    first_offset=7,
    last_offset=9,
    min_timestamp_ms=-1,
    max_timestamp_ms=1_357_034_400_123,
    null_keys=0,
    null_values=1,
    sha256="00",
)


def test_json_round_trip():
    assert ArchiveFile.model_validate_json(FILE.model_dump_json()) == FILE
    with pytest.raises(ValidationError):
        ArchiveFile.model_validate({**FILE.model_dump(), "colour": "red"})


def test_statistics_as_delta_has_them():
    assert json.loads(FILE.delta_statistics) == {
        "numRecords": 3,
        "nullCount": {"offset": 0},
        "minValues": {"offset": 7, "timestamp": "1969-12-31T23:59:59.999Z"},
        "maxValues": {"offset": 9, "timestamp": "2013-01-01T10:00:00.123Z"},
    }


@pytest.mark.parametrize("bound", [None, -(2**63), 253_402_300_800_000, 2**63 - 1])
def test_timestamps_that_delta_cannot_write_are_left_out(bound):
    statistics = json.loads(FILE.model_copy(update={"max_timestamp_ms": bound}).delta_statistics)
    assert statistics["minValues"] == {"offset": 7}
    assert statistics["maxValues"] == {"offset": 9}


def test_iso_timestamps_to_the_ends_of_the_calendar():
    assert iso_timestamp(-62_135_596_800_000) == "0001-01-01T00:00:00.000Z"
    assert iso_timestamp(253_402_300_799_999) == "9999-12-31T23:59:59.999Z"


def test_is_dense():
    assert FILE.is_dense
    assert not FILE.model_copy(update={"last_offset": 10}).is_dense
