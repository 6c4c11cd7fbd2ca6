"""What stored bytes stand for, told by a store's description instead of by the job's code.

A serde is known by what it says of itself (``describe``). Bytes of a serde of the job's own cannot be read here, which
an error says.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from statelib.columns.window_grids import grid_of
from statelib.errors.kinds import ConfigurationError
from statelib.serdes import serde_for
from statelib.serdes.json import JsonSerde
from statelib.serdes.uuids import UuidSerde
from statelib.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
from statelib.serdes.with_headers import WithHeadersSerde
from statelib.stores.stored_rows import stored_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib.described.description import Described
    from statelib.serdes import Serde
    from statelib.stores.header import Header


def described_serde(described: Mapping[str, Any] | None, arrow_type: pa.DataType, *, of: str) -> Serde:
    """The serde that describes itself so; None: that of the type.

    Args:
        described: By `Serde.describe`.
        arrow_type: Of its values.
        of: What it is for, for the error.

    Raises:
        ConfigurationError: It is one of the job's own.
    """
    own: Serde = serde_for(arrow_type)
    if described is None or described == own.describe():
        return own
    serde = _of_ours(described, arrow_type, of) if described.get("type") == str(arrow_type) else None
    if serde is None or serde.describe() != described:
        raise ConfigurationError(
            f"{of} are bytes of the job's own serde ({described}), which cannot be read without the job's code",
            next_step="leave these columns out, or open the store in a processor of the job",
        )
    return serde


def _of_ours(described: Mapping[str, Any], arrow_type: pa.DataType, of: str) -> Serde | None:  # noqa: PLR0911 - one for each kind
    """A serde of this library's, of which the description says all; those of a schema registry need the registry."""
    match described:
        case {"wire_format": _}:
            return None
        case {"serde": "json"}:
            return JsonSerde(arrow_type)
        case {"serde": "uuid"}:
            return UuidSerde()
        case {"serde": "time-windowed", "key": key, "window_size_ms": size_ms, **others}:
            grid = grid_of(others["grid"]) if "grid" in others else None
            return TimeWindowedSerde(described_serde(key, arrow_type.field("key").type, of=of), size_ms, grid)
        case {"serde": "with-headers", "value": value}:
            return WithHeadersSerde(described_serde(value, arrow_type.field("value").type, of=of))
        case {"serde": "session-windowed", "key": key}:
            return SessionWindowedSerde(described_serde(key, arrow_type.field("key").type, of=of))
        case {"serde": "avro", "schema": schema}:
            from statelib.serdes.avro.serde import AvroSerde  # noqa: PLC0415 - only where such values are

            return AvroSerde(schema, described.get("writer_schema"))
        case {"serde": "protobuf", "message": message, "descriptors": descriptors}:
            from statelib.serdes.protobuf.serde import ProtobufSerde  # noqa: PLC0415 - only where such values are

            return ProtobufSerde(b64decode(descriptors), message)
    return None


def stored_values(described: Described) -> Callable[[pa.Array], pa.Array]:
    """Of a key-value or versioned store: what makes values of stored bytes."""
    if described.is_of_processor:
        return _by_serde(described)
    serde, results_of = serde_for(stored_type(described.schema)), described.results_of
    return lambda data: results_of(serde.deserialize(data))


def stored_aggregates(described: Described) -> Callable[[pa.Array], pa.Array]:
    """The same of a window or session store, whose rows are structs even of one column."""
    if described.is_of_processor:
        return _by_serde(described)
    states, results_of = stored_states(described.schema), described.results_of
    return lambda data: results_of(states(data))


def stored_states(schema: pa.Schema) -> Callable[[pa.Array], pa.Array]:
    """Of a window or session store: what makes states of its rows; see `Described.results_of`."""
    if "row" not in schema.names:
        return _not_described
    row = schema.field("row").type
    serde = serde_for(row)
    return lambda data: stored_value(serde.deserialize(data))


def buffered_columns(header: Header, rows: pa.Array) -> dict[str, pa.Array]:
    """What the rows of a buffer hold, by name; its header has their types."""
    schema = header.schema or pa.schema([])
    return dict(zip(schema.names, serde_for(pa.struct(list(schema))).deserialize(rows).flatten(), strict=True))


def _not_described(data: pa.Array) -> NoReturn:
    del data
    raise ConfigurationError(
        "the description of the store does not say how its values are stored: an older release made it",
        next_step="leave the column value out, or run one more slice of a topology that this release describes",
    )


def _by_serde(described: Described) -> Callable[[pa.Array], pa.Array]:
    serde, arrow_type = described.settings["value_serde"], described.type("value")
    return lambda data: described_serde(serde, arrow_type, of="values").deserialize(data)


def stored_type(schema: pa.Schema) -> pa.DataType:
    """The type of a state: what is aggregated, else the value."""
    return schema.field("stored" if "stored" in schema.names else "value").type
