"""What a text stands for as a key of a topic."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hindstream.console.keys import keys_of
from statelib.columns.windowed_type import windowed_struct
from statelib.errors.kinds import ConfigurationError

TIME = pa.timestamp("us", "UTC")
WINDOWED = pa.struct([("key", pa.string()), ("window_start", TIME), ("window_end", TIME)])
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
A_STRUCT = pa.struct([("a", pa.int64())])
DECIMAL = pa.decimal128(6, 2)


@pytest.mark.parametrize(
    ("text", "type_", "keys"),
    [
        ("JFK", pa.string(), ["JFK"]),
        ('{"a": 1}', pa.string(), ['{"a": 1}']),
        ("5", pa.int32(), [5]),
        ("true", pa.bool_(), [True]),
        ("1.5", pa.float64(), [1.5]),
        ("1.50", DECIMAL, [Decimal("1.50")]),
        ('"1.50"', DECIMAL, [Decimal("1.50")]),
        ("2013-01-01", pa.date32(), [date(2013, 1, 1)]),
        ("2013-01-01T05:00Z", TIME, [datetime(2013, 1, 1, 5, tzinfo=UTC)]),
        ("/w==", pa.binary(), [b"/w==", b"\xff"]),
        ("not base64", pa.binary(), [b"not base64"]),
        ("raw!", windowed_struct(pa.binary()), [{"key": b"raw!"}]),
        ('{"a": 1, "b": "x"}', pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}]),
        ("[1, 2]", pa.list_(pa.int32()), [[1, 2]]),
        ("JFK", WINDOWED, [{"key": "JFK"}]),
        (
            '["JFK", 0, 60000]',
            WINDOWED,
            [
                {
                    "key": "JFK",
                    "window_start": datetime(1970, 1, 1, tzinfo=UTC),
                    "window_end": datetime(1970, 1, 1, 0, 1, tzinfo=UTC),
                }
            ],
        ),
        (
            '{"key": "JFK", "window_start": "1970-01-01T00:00:00Z"}',
            WINDOWED,
            [{"key": "JFK", "window_start": EPOCH}],
        ),
    ],
)
def test_a_text_stands_for_a_key_of_the_topic_s_type(text, type_, keys) -> None:
    assert keys_of(text, type_) == keys


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("x", pa.int64()), ("1.5", pa.int64()), ("99999999999", pa.int32()), ("x", DECIMAL), ("soon", TIME),
        ("{", A_STRUCT), ("7", A_STRUCT), ('{"b": 1}', A_STRUCT),
    ],
)  # fmt: skip
def test_a_text_that_is_no_key_is_refused(text, type_) -> None:
    with pytest.raises(ConfigurationError, match="is no key of this topic"):
        keys_of(text, type_)
