from __future__ import annotations

import pytest

from hindstream.iceberg.position import Part, TablePosition
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

POSITION = TablePosition(
    readers="clicks",
    made_at_ms=1_700_000_000_000,
    job="fix",
    parts=(
        Part(topic="hours", table_id="6f", rollback=0, ends=(117, 98)),
        Part(topic="hours.fix", table_id="7a", rollback=3, ends=(0, 5, 2)),
    ),
)
GOLDEN = (
    '{"format":1,"job":"fix","made_at_ms":1700000000000,"parts":['
    '{"ends":[117,98],"rollback":0,"table_id":"6f","topic":"hours"},'
    '{"ends":[0,5,2],"rollback":3,"table_id":"7a","topic":"hours.fix"}],"readers":"clicks"}'
)


def test_golden_text() -> None:
    assert POSITION.encode() == GOLDEN
    assert TablePosition.decode(GOLDEN, table="t") == POSITION


def test_so_many_records() -> None:
    assert [POSITION.records(partition) for partition in range(POSITION.partitions)] == [117, 103, 2]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":1}', GOLDEN.replace("117", "true"), GOLDEN[:-1]])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(CorruptedDataError, match="a published position cannot be read"):
        TablePosition.decode(text, table="t")


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has format 2, this Hindstream knows up to 1"):
        TablePosition.decode(GOLDEN.replace('"format":1', '"format":2'), table="t")
