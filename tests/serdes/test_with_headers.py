"""Values with headers have the bytes of Kafka Streams' stores (KIP-1271), without the timestamp in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.described.stored_values import described_serde
from statelib.errors.kinds import InputError
from statelib.serdes import FixedWidthSerde, StringSerde
from statelib.serdes.json import JsonSerde
from statelib.serdes.with_headers import WithHeadersSerde

if TYPE_CHECKING:
    from statelib.serdes import Serde

SERDE = WithHeadersSerde(StringSerde())
SOME = [("a", b"x"), ("b", None), ("a", b"")]


def row(value: Any, headers: list[tuple[str, bytes | None]]) -> dict[str, Any]:
    return {"value": value, "headers": [{"key": name, "value": of} for name, of in headers]}


def written(*rows: dict[str, Any] | None, serde: WithHeadersSerde = SERDE) -> list[bytes | None]:
    raw: list[bytes | None] = serde.serialize(pa.array(rows, serde.arrow_type)).to_pylist()
    return raw


def test_the_bytes_are_kafkas() -> None:
    """Of ``HeadersSerializer`` in 4.4.0: the size, the number, names and values, each with its size; null: -1."""
    assert written(row("v", []), row("v", SOME), None) == [
        b"\x00v",
        bytes([22, 6, 2]) + b"a" + bytes([2]) + b"x" + bytes([2]) + b"b" + bytes([1, 2]) + b"a" + bytes([0]) + b"v",
        None,
    ]


@pytest.mark.parametrize("size", [63, 64, 8191, 8192, 70_000])
def test_sizes_are_varints(size: int) -> None:
    of = row("v", [("n" * size, b"x" * size)])
    assert SERDE.deserialize(pa.array(written(of), pa.binary())).to_pylist() == [of]


HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=200)), max_size=4)


@given(st.lists(st.none() | st.tuples(st.text(max_size=9), HEADERS), max_size=5))
def test_what_is_written_comes_back(rows: list[Any]) -> None:
    of = [one and row(*one) for one in rows]
    assert SERDE.deserialize(SERDE.serialize(pa.array(of, SERDE.arrow_type))).to_pylist() == of


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "no number at byte 0 of 0"),
        (b"\x80", "no number at byte 1 of 1"),
        (b"\x0a\x02", "headers of 5 bytes in 2 bytes"),
        (b"\x01v", "headers of -1 bytes"),
        (b"\x04\x02\x08", "a part of 4 bytes in headers that end at 3"),
        (b"\x04\x00\x00v", "headers of 2 bytes end after 2 of 3"),
        (b"\x08\x02\x02\xff\x00v", "codec can't decode"),
    ],
)
def test_other_bytes_are_refused(raw: bytes, why: str) -> None:
    with pytest.raises(InputError, match=f"cannot be decoded: .*{why}"):
        SERDE.deserialize(pa.array([b"\x00v", raw], pa.binary()))


def test_a_value_that_cannot_be_read_is_told_by_its_serde() -> None:
    with pytest.raises(InputError, match="cannot be decoded") as caught:
        WithHeadersSerde(FixedWidthSerde(pa.int64())).deserialize(pa.array([b"\x00\x01"], pa.binary()))
    assert caught.value.place == {"row": 0}


@pytest.mark.parametrize("value", [StringSerde(), JsonSerde(pa.struct([("n", pa.int64())]))])
def test_it_is_made_again_of_its_description(value: Serde) -> None:
    serde = WithHeadersSerde(value)
    assert described_serde(dict(serde.describe()), serde.arrow_type, of="values") == serde
