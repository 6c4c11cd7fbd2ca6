"""Rows of Debezium: changes of a database's rows become the rows as they are then.

::

    {"before": {...}, "after": {...}, "source": {"ts_ms": 1356998400000, ...}, "op": "u", "ts_ms": ...}

or the same within ``{"schema": ..., "payload": ...}``. The value is ``after``; a deletion (``op`` is ``d``) is a
tombstone, as is the row without a payload that Debezium sends after it. The timestamp is that of the commit in the
database, ``source.ts_ms``. Truncations (``t``) and messages (``m``) are about no row, and cannot be records.

Source: Debezium's documentation of its connectors, "Data change events".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.envelopes import placed
from statelib.ingest.formats.rows import BadRow, Rows

_ENDING = ".Value"
"""Of the name of the type of a table's rows."""

_OF_ROWS = ("c", "r", "u", "d")
_NOT_OF_ROWS = {"t": "a truncation of the table", "m": "a message, and no change of a row"}


def is_debezium(schema: pa.Schema) -> bool:
    """Whether rows look like Debezium's."""
    names = schema.names
    if "payload" in names and pa.types.is_struct(schema.field("payload").type):
        names = [field.name for field in schema.field("payload").type]
    return {"before", "after", "op", "source"} <= {*names}


def from_debezium(rows: Rows) -> Rows:
    """The fields of the database's rows, with the columns of `statelib.ingest.envelopes.placed`."""
    given = {name: rows.columns[name] for name in rows.columns.schema.names if placed.is_beside(name)}
    change = _change(rows.columns)
    count = len(rows.numbers)
    op = change.get("op", pa.nulls(count, pa.string())).cast(pa.string())
    gone = given.get(placed.TOMBSTONE, pa.array(np.zeros(count, np.bool_)))
    known = pc.fill_null(pc.is_in(op, value_set=pa.array(_OF_ROWS)), False)
    usable = pc.or_(known, gone).to_numpy(zero_copy_only=False)
    made = {
        **_fields(change, given.get(placed.KEY)),
        **given,
        placed.TOMBSTONE: pc.or_(gone, pc.fill_null(pc.equal(op, "d"), False)),
        placed.TIMESTAMP: _timestamp(change, given.get(placed.TIMESTAMP), count),
    }
    columns = pa.RecordBatch.from_pydict(made)
    bad = [_bad(rows, row, op[row].as_py()) for row in np.flatnonzero(~usable).tolist()]
    if bad:
        columns = columns.filter(pa.array(usable))
    return Rows(columns, rows.numbers[usable], (*rows.bad, *bad))


def _change(columns: pa.RecordBatch) -> dict[str, pa.Array]:
    """The parts of changes by name, wherever they stand."""
    if "payload" in columns.schema.names and pa.types.is_struct(columns["payload"].type):
        payload = columns["payload"]
        return dict(zip((field.name for field in payload.type), payload.flatten(), strict=True))
    return {name: columns[name] for name in columns.schema.names if not placed.is_beside(name)}


def _fields(change: dict[str, pa.Array], key: pa.Array | None) -> dict[str, pa.Array]:
    """Of each row what it is after the change; of one that is gone what it was, or what its key says."""
    found: dict[str, list[pa.Array]] = {}
    for struct in (change.get("after"), change.get("before"), key):
        if struct is not None and pa.types.is_struct(struct.type):
            for field, values in zip(struct.type, struct.flatten(), strict=True):
                found.setdefault(field.name, []).append(values)
    if len(found) == 1 and (name := next(iter(found))).endswith(_ENDING) and pa.types.is_struct(found[name][0].type):
        what = "the changes are Avro's JSON, in which each value stands within the name of its type"
        step = "dump the topic as it is (kcat without -s avro), and load it with --registry"
        raise ConfigurationError(what, field=f"after.{name}", next_step=step)
    after = change.get("after")
    is_there = None if after is None else after.is_valid()
    return {name: _first(values, is_there) for name, values in found.items()}


def _first(values: list[pa.Array], is_there: pa.Array | None) -> pa.Array:
    """The value after the change where the row is there; else the first that is known."""
    alike = [one for one in values if one.type.equals(values[0].type)]
    if len(alike) == 1 or is_there is None:
        return alike[0]
    return pc.if_else(is_there, alike[0], pc.coalesce(*alike))


def _timestamp(change: dict[str, pa.Array], given: pa.Array | None, count: int) -> pa.Array:
    source = change.get("source")
    times = []
    if source is not None and pa.types.is_struct(source.type) and source.type.get_field_index("ts_ms") >= 0:
        times.append(pc.struct_field(source, "ts_ms").cast(pa.int64()))
    times += [change["ts_ms"].cast(pa.int64())] if "ts_ms" in change else []
    times += [given] if given is not None else []
    return pc.coalesce(*times) if times else pa.nulls(count, pa.int64())


def _bad(rows: Rows, row: int, op: str | None) -> BadRow:
    reason = _NOT_OF_ROWS.get(op or "", f"{op!r} is no kind of change")
    return rows.bad_row(row, "op", f"it is {reason}")
