"""JSON objects as records, read a whole Arrow array at a time."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from statelib.errors import ConfigurationError
from statelib.serdes.base import Lenient, StrictSerde

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class JsonSerde(StrictSerde):
    """JSON objects, one a value, UTF-8.

    Reading: a field that is missing is null, one that the type does not have is ignored, one of another type makes the
    value undecodable. Timestamps are ISO 8601 strings. Writing goes row by row, in the order of the type's fields.

    Args:
        arrow_type: A struct.
    """

    arrow_type: pa.DataType

    def __post_init__(self) -> None:
        if not pa.types.is_struct(self.arrow_type):
            raise ConfigurationError(
                f"a JSON serde needs a struct type, not {self.arrow_type}", next_step="wrap the value in a struct"
            )

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`; binary fields become base64."""
        return _documents(values, _json_scalar).cast(pa.binary())

    def deserialize_lenient(self, data: pa.Array) -> Lenient:
        """See `Serde`; ``data`` may also be strings."""
        documents = data.cast(pa.binary()).to_pylist()
        there = [row for row, document in enumerate(documents) if document is not None]
        parts, problems = self._parse([documents[row] for row in there])
        reasons: list[str | None] = [None] * len(documents)
        for row, problem in zip(there, problems, strict=True):
            reasons[row] = problem
        decoded = [row for row in there if reasons[row] is None]
        source = np.full(len(documents), -1)
        source[decoded] = np.arange(len(decoded))
        values = pa.concat_arrays([*parts, pa.nulls(0, self.arrow_type)]).take(pa.array(source, mask=source < 0))
        bad = np.array([reason is not None for reason in reasons], np.bool_)
        return Lenient(values, bad, pa.array(reasons, pa.string()))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "json", "type": str(self.arrow_type)}

    def _parse(self, documents: list[bytes]) -> tuple[list[pa.Array], list[str | None]]:
        """The decoded documents in order, and for each document what is wrong with it: halves until it is found."""
        if not documents:
            return [], []
        try:
            return [self._parse_all(documents)], [None] * len(documents)
        except (pa.ArrowException, ValueError) as error:
            if len(documents) == 1:
                return [], [str(error)]
        middle = len(documents) // 2
        left, left_problems = self._parse(documents[:middle])
        right, right_problems = self._parse(documents[middle:])
        return left + right, left_problems + right_problems

    def _parse_all(self, documents: list[bytes]) -> pa.Array:
        # One document a line: a line break inside one can only be white space between its tokens. Each begins an
        # object, so if there are as many rows as documents, each is exactly one row.
        lines = [document.replace(b"\n", b" ").replace(b"\r", b" ").strip() for document in documents]
        if not all(line.startswith(b"{") for line in lines):
            raise ValueError("not a JSON object")
        content = b"\n".join(lines)
        if not content.isascii():
            content.decode("utf-8")
        table = pa_json.read_json(
            pa.BufferReader(content),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=max(1 << 20, 2 * max(map(len, lines)))),
            parse_options=pa_json.ParseOptions(
                explicit_schema=pa.schema(list(self.arrow_type)), unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != len(documents):
            raise ValueError("not exactly one JSON object")
        return table.to_struct_array().combine_chunks().cast(self.arrow_type)


def json_text(values: pa.Array) -> pa.StringArray:
    """Values of any Arrow type as JSON, for people to read; null stays null, binary becomes base64."""
    return _documents(values, _readable)


def _documents(values: pa.Array, scalar: Callable[[object], str]) -> pa.StringArray:
    documents = [
        None if value is None else json.dumps(value, default=scalar, ensure_ascii=False, separators=(",", ":"))
        for value in values.to_pylist()
    ]
    return pa.array(documents, pa.string())


def _readable(value: object) -> str:
    try:
        return _json_scalar(value)
    except ConfigurationError:
        return str(value)


def _json_scalar(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec=_precision(value))
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise ConfigurationError(f"JSON cannot hold a {type(value).__name__}", next_step="map the field to another type")


def _precision(time: dt.datetime) -> str:
    """As many decimals as needed: a reader whose type has fewer would refuse even zeros."""
    if getattr(time, "nanosecond", 0):  # Arrow gives nanoseconds as pandas' subclass of datetime
        return "nanoseconds"
    if time.microsecond % 1000:
        return "microseconds"
    return "milliseconds" if time.microsecond else "seconds"
