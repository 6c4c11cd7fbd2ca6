"""Which keys a bound has, whatever their type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from statelib.repair.bound import OtherKeys

WINDOWED = pa.struct([("key", pa.string()), ("window_start", pa.int64()), ("window_end", pa.int64())])
PLACE = pa.struct([("country", pa.string()), ("city", pa.string())])


@pytest.mark.parametrize(
    ("type_", "keys", "wanted", "others"),
    [
        (pa.string(), ["a", "b", "b", None], ["a"], {"b": 2, "null": 1}),
        (pa.int64(), [1, 2, 2], [2], {"1": 1}),
        (WINDOWED, [{"key": "a", "window_start": 0, "window_end": 9}] * 2, [{"key": "a"}], {}),
        (WINDOWED, [{"key": "a", "window_start": 0, "window_end": 9}], [{"key": "a", "window_start": 9}], {"a": 1}),
        (PLACE, [{"country": "de", "city": "Ulm"}], [{"country": "de"}], {}),
        (PLACE, [{"country": "de", "city": "Ulm"}], [{}], {'{"country":"de","city":"Ulm"}': 1}),
        (pa.binary(), [b"a", b"b"], [b"a"], {'"Yg=="': 1}),
    ],
)
def test_others_are_counted(type_: pa.DataType, keys: list[Any], wanted: list[Any], others: dict[str, int]) -> None:
    found = OtherKeys(wanted)
    rows = pa.table({"key": pa.array(keys, type_)})
    found.take(rows, rows)
    found.take(None, rows.slice(0, 0))
    assert found.keys == others
