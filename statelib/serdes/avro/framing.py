"""Where values of Avro end that lie one behind the other in a file: they tell it themselves, a separator would not.

Any byte can be part of a value, that of a line break too. What is read by the writer's schema from the first byte of a
value ends at its last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from statelib.errors.kinds import ConfigurationError
from statelib.serdes.avro import kernel
from statelib.serdes.avro.program import compiled
from statelib.serdes.avro.schema import Primitive, parse
from statelib.serdes.wire_format import HEAD_BYTES, UnusableSchema, id_in, registered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.serdes.avro.program import Program
    from statelib.serdes.avro.serde import AvroSerde
    from statelib.serdes.schema_source import SchemaSource


class Found(NamedTuple):
    """Values that were found.

    Attributes:
        start: int64[n]: where each begins.
        end: int64[n]: where it ends.
        next: Where the next one begins, which was not read.
        is_cut_off: Whether that goes on behind the bytes.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    next: int
    is_cut_off: bool


@dataclass(frozen=True, slots=True)
class AvroFraming:
    """How values tell where they end.

    Attributes:
        registry: Has the schemas of values that begin with an id; None: values begin with no id.
        schema: That all were written with, where they begin with no id.
    """

    registry: SchemaSource | None
    schema: str = ""

    def find(self, data: NDArray[np.uint8], at: int, separator: bytes) -> Found:
        """Values from ``at`` on that are of one schema and have the separator behind them.

        Raises:
            RetryableError: The registry does not answer.
            ConfigurationError: It does not let us in.
        """
        head = data[at : at + (HEAD_BYTES if self.registry is not None else 0)]
        program = self._program(head.tobytes())
        none = np.empty(0, np.int64)
        if program is None:
            return Found(none, none, at, is_cut_off=self.registry is not None and len(head) < HEAD_BYTES)
        room = len(data) - at + 1
        place, value, start, end = (np.empty(room, np.int64) for _ in range(4))
        stack = np.empty(kernel.FRAME_WORDS * program.depth + 1, np.int64)
        stopped = np.empty(2, np.int64)
        count = kernel.read_ends(
            program.code,
            data,
            at,
            head.copy(),
            np.frombuffer(separator, np.uint8),
            stack,
            place,
            value,
            start,
            end,
            stopped,
        )
        is_cut_off = int(stopped[1]) in {kernel.TRUNCATED, kernel.BLOCK}
        return Found(start[:count].copy(), end[:count].copy(), int(stopped[0]), is_cut_off)

    def _program(self, head: bytes) -> Program | None:
        if self.registry is None:
            return _compiled(self.schema, ())
        schema_id = id_in(head)
        return None if schema_id is None else _by_id(self.registry, schema_id)


def framing_of(serde: AvroSerde) -> AvroFraming:
    """How the values of a serde tell where they end."""
    return AvroFraming(serde.registry, "" if serde.registry is not None else serde.writer_schema or serde.schema)


@lru_cache(maxsize=1024)
def _by_id(registry: SchemaSource, schema_id: int) -> Program | None:
    """The program of a schema; None: its values do not tell where they end."""
    try:
        found = registered(registry, schema_id, "AVRO")
    except UnusableSchema:
        return None
    return _compiled(found.text, found.needed())


@lru_cache(maxsize=1024)
def _compiled(text: str, references: tuple[str, ...]) -> Program | None:
    try:
        schema = parse(text, references)
        is_bare = isinstance(schema, Primitive) and schema.kind == "bytes"
        return None if is_bare else compiled(schema)
    except ConfigurationError:
        return None  # decoding says what is wrong with it
