"""What one driver of a test of Kafka Streams has done, as ``tracer/`` writes it down.

A recording is JSON: the calls of the DSL that built the topology, the functions of the test as tables of their calls,
what was piped in and what was sent, and what the stores held in the end.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.columns.windowed import Windowed
from statelib.settings.semantics import semantics_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.settings.semantics import Semantics

FORMAT = 1
WINDOWED_BOUNDS = ("window_start", "window_end")
_WHOLE = ("int", "long", "short")
_PLAIN = {"int": pa.int32(), "long": pa.int64(), "short": pa.int16(), "double": pa.float64(), "float": pa.float32()}
_SERDES = {
    "String": pa.string(),
    "Integer": pa.int32(),
    "Long": pa.int64(),
    "Short": pa.int16(),
    "Double": pa.float64(),
    "Float": pa.float32(),
    "Bytes": pa.binary(),
    "ByteArray": pa.binary(),
    "Boolean": pa.bool_(),
}


class NotExpressed(Exception):
    """A recording cannot be done here; the text says why, the same for all of a kind."""


@dataclass(frozen=True)
class Recording:
    """See the module.

    Attributes:
        test: The test, ``class#method`` with its arguments behind it.
        kafka: The version of Kafka Streams.
        settings: Of the driver.
        describe: The topology's text; None: it has none.
        calls: Those of the DSL, in order.
        functions: By number; the calls of each.
        events: What was piped in and sent, in order.
        stores: By name what the stores held in the end.
    """

    test: str
    kafka: str
    settings: Mapping[str, str]
    describe: str | None
    calls: list[dict[str, Any]]
    functions: Mapping[str, dict[str, Any]]
    events: list[dict[str, Any]]
    stores: Mapping[str, list[list[Any]]]

    @classmethod
    def of(cls, text: str | bytes) -> Recording:
        """That of a file.

        Raises:
            NotExpressed: There is no topology that was built by the DSL.
        """
        told = json.loads(text)
        if told["format"] != FORMAT:
            raise ValueError(f"a recording of format {told['format']}; trace it again")
        if "calls" not in told:
            raise NotExpressed("a topology that was built with Kafka Streams' internals")
        return cls(
            told["test"],
            told["kafka"],
            told["settings"],
            told.get("describe"),
            told["calls"],
            told["functions"],
            told["events"],
            told.get("stores", {}),
        )

    @property
    def semantics(self) -> Semantics:
        """Those that do what this version does."""
        return semantics_of(self.kafka)

    @property
    def piped(self) -> list[dict[str, Any]]:
        """The records that were piped in."""
        return [event for event in self.events if "pipe" in event]

    @property
    def sent(self) -> dict[str, list[Row]]:
        """By topic what was sent there, repartition topics included."""
        sent: dict[str, list[Row]] = {}
        for event in self.events:
            if "sent" in event:
                sent.setdefault(event["sent"], []).append(row(event["record"]))
        return sent


Row = tuple[Any, Any, int, tuple[tuple[str, bytes | None], ...]]
"""Key, value, timestamp and headers of a record."""


def row(told: list[Any]) -> Row:
    """A record."""
    key, value, timestamp, headers = told
    return plain(key), plain(value), timestamp, tuple((name, _bytes(text)) for name, text in headers)


def plain(told: Any) -> Any:
    """A key or value as Python data: what has no Arrow type is a text that tells all that is in it."""
    if not isinstance(told, dict):
        return told
    for name in _WHOLE:
        if name in told:
            return told[name]
    for name in ("double", "float"):
        if name in told:
            return float(told[name])
    if "bytes" in told:
        return base64.b64decode(told["bytes"])
    if "windowed" in told:
        return Windowed(plain(told["windowed"]), told["start"], told["end"])
    return json.dumps(told, sort_keys=True)


def type_of(told: Iterable[Any]) -> pa.DataType | None:
    """The Arrow type of some keys or values; None: they say nothing of it.

    Raises:
        NotExpressed: They are of several types.
    """
    types = {_type(one) for one in told if one is not None}
    if len(types) > 1:
        raise NotExpressed("keys or values of several types in one stream")
    return types.pop() if types else None


def type_of_serde(told: Any) -> pa.DataType | None:
    """That of what a serde makes, by its class; None: of any."""
    name = str(told["serde"] if isinstance(told, dict) and "serde" in told else told or "")
    short = name.rpartition(".")[2].rpartition("$")[2].removesuffix("Serde").removesuffix("Deserializer")
    return _SERDES.get(short.removesuffix("Serializer"))


def _type(told: Any) -> pa.DataType:
    if isinstance(told, bool):
        return pa.bool_()
    if isinstance(told, dict):
        for name, type_ in _PLAIN.items():
            if name in told:
                return type_
        if "bytes" in told:
            return pa.binary()
        if "windowed" in told:
            return pa.struct([("key", _type(told["windowed"])), *((bound, pa.int64()) for bound in WINDOWED_BOUNDS)])
    return pa.string()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
