"""What this process and the Java that runs an application's topology say to each other, as bytes.

Numbers are big-endian, as Java's ``DataInput`` reads them. A text is UTF-8; a text or bytes have their length before
them, u32, and -1 is null::

    Java begins     version i32
    to Java         TOPOLOGY u8: CLASS::METHOD text
    from Java       READY u8: description text, sources texts, sinks texts, processors texts
    to Java         RUN u8: topics texts, n i32, n times: topic i32, timestamp i64, key, value, headers
    from Java       any number of RECORD u8: topic text, cause i32, timestamp i64, key, value, headers
                    then DONE u8: dropped f64
    instead         FAILED u8: record i32, exception text, message text, place text
    texts           n i32, n times a text
    headers         n i32, n times a text and bytes

``cause`` and ``record`` are places among the records of the run, from 0; -1: none. Java reads all records of a run
before it answers. It ends when its input does. The other end is ``java/TopologyRunner.java``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from statelib.errors.kinds import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

VERSION = 1
FAILED, READY, RECORD, DONE = range(4)
TOPOLOGY, RUN = 1, 2
NO_RECORD = -1

_INT = struct.Struct(">i")
_INT_LONG = struct.Struct(">iq")
_DOUBLE = struct.Struct(">d")


class Readable(Protocol):
    """Where bytes come from."""

    def read(self, size: int, /) -> bytes:
        """So many bytes; fewer at the end."""


@dataclass(frozen=True, slots=True)
class Ready:
    """An application whose topology was found.

    Attributes:
        description: What its ``Topology.describe()`` prints.
        sources: The topics that it reads; a pattern begins with ``/``. Some are its own repartition topics.
        sinks: The topics that it writes; an empty one: topics are chosen record by record.
        processors: By name, the class of Kafka's that makes it, and what that knows of windows and the like. Empty: not
            known of this version.
    """

    description: str
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    processors: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Written:
    """A record that the application has written.

    Attributes:
        topic: Where.
        cause: The place of the record at which it was.
        timestamp: Ms.
        key: Its bytes.
        value: Its bytes.
        headers: Pairs of a name and bytes.
    """

    topic: str
    cause: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """What the application has thrown.

    Attributes:
        record: The place of the record at which it did; -1: at none.
        exception: The class of the innermost exception.
        message: Its message; None: it has none.
        place: The line of the application's where it was thrown; empty: not known.
    """

    record: int
    exception: str
    message: str | None
    place: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the application makes of records.

    Attributes:
        written: In order.
        dropped: How many records its operators have dropped and counted.
    """

    written: tuple[Written, ...]
    dropped: int


class Ended(Exception):
    """There are no more bytes."""


def framed(
    topic: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """A record to be run."""
    parts = [_INT_LONG.pack(topic, timestamp), _bytes(key), _bytes(value), _INT.pack(len(headers))]
    for name, content in headers:
        parts += [_bytes(name.encode()), _bytes(content)]
    return b"".join(parts)


def naming(topology: str) -> bytes:
    """What asks for a topology."""
    return bytes([TOPOLOGY]) + _bytes(topology.encode())


def request(topics: Sequence[str], records: Sequence[bytes]) -> Iterable[bytes]:
    """What asks for a run; ``records``: each `framed`, its topic one of ``topics``."""
    yield bytes([RUN]) + _INT.pack(len(topics)) + b"".join(_bytes(topic.encode()) for topic in topics)
    yield _INT.pack(len(records))
    yield from records


def read_version(stream: Readable) -> None:
    """How Java begins.

    Raises:
        Ended: It has ended before that.
        InternalError: It speaks another version.
    """
    version = _int(stream)
    if version != VERSION:
        raise InternalError(f"the Java program speaks version {version}, not {VERSION}")


def read_ready(stream: Readable) -> Ready | Failed:
    """The topology that was asked for.

    Raises:
        Ended: Java has ended before that.
    """
    if (kind := _read(stream, 1)[0]) == FAILED:
        return _failed(stream)
    _check(kind, READY)
    description, sources, sinks = _text(stream), _texts(stream), _texts(stream)
    parts = (text.split("\t") for text in _texts(stream))
    return Ready(description, sources, sinks, {name: (made_by, knows) for name, made_by, knows in parts})


def read_answer(stream: Readable) -> Answer | Failed:
    """What comes of a run.

    Raises:
        Ended: Java has ended before all of it.
    """
    written = []
    while (kind := _read(stream, 1)[0]) == RECORD:
        topic = _text(stream)
        cause, timestamp = _INT_LONG.unpack(_read(stream, _INT_LONG.size))
        key, value = _bytes_of(stream), _bytes_of(stream)
        headers = tuple((_text(stream), _bytes_of(stream)) for _ in range(_int(stream)))
        written.append(Written(topic, cause, timestamp, key, value, headers))
    if kind == FAILED:
        return _failed(stream)
    _check(kind, DONE)
    return Answer(tuple(written), int(_DOUBLE.unpack(_read(stream, _DOUBLE.size))[0]))


def _failed(stream: Readable) -> Failed:
    record, exception = _int(stream), _text(stream)
    message = _bytes_of(stream)
    return Failed(record, exception, None if message is None else message.decode(errors="replace"), _text(stream))


def _check(kind: int, expected: int) -> None:
    if kind != expected:
        raise InternalError(f"the Java program answers {kind}, not {expected}")


def _bytes(content: bytes | None) -> bytes:
    return _INT.pack(-1) if content is None else _INT.pack(len(content)) + content


def _read(stream: Readable, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise Ended
    return content


def _int(stream: Readable) -> int:
    number: int = _INT.unpack(_read(stream, _INT.size))[0]
    return number


def _bytes_of(stream: Readable) -> bytes | None:
    length = _int(stream)
    return None if length < 0 else _read(stream, length)


def _text(stream: Readable) -> str:
    return (_bytes_of(stream) or b"").decode(errors="replace")


def _texts(stream: Readable) -> tuple[str, ...]:
    return tuple(_text(stream) for _ in range(_int(stream)))
