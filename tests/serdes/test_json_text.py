"""What JSON text looks like where it is not read back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from statelib.serdes.json import json_text


def test_any_value_is_text_for_people():
    structs = pa.array([{"at": 0, "waits": 1500, "raw": b"\xff"}, None], pa.struct([
        ("at", pa.timestamp("ms", "UTC")), ("waits", pa.duration("ms")), ("raw", pa.binary()),
    ]))  # fmt: skip
    text = '{"at":"1970-01-01T00:00:00+00:00","waits":"0:00:01.500000","raw":"/w=="}'
    assert json_text(structs).to_pylist() == [text, None]
    assert json_text(pa.array(["ä", None])).to_pylist() == ['"ä"', None]


@pytest.mark.parametrize(("number", "text"), [("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")])
def test_numbers_that_json_does_not_have(number: str, text: str) -> None:
    value = float(number)
    assert json_text(pa.array([value, 0.5])).to_pylist() == [f'"{text}"', "0.5"]
    nested = pa.array([{"a": [{"b": value}], "c": b"\xff"}])
    assert json_text(nested).to_pylist() == [f'{{"a":[{{"b":"{text}"}}],"c":"/w=="}}']
