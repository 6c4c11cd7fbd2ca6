"""What a key-value store keeps of a row of columns.

A single column called ``value`` is kept as it is, in the bytes of its type, as Kafka's serialisers write them. Several
columns, or one of another name, are kept as a struct, in the native row format.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

_SINGLE = ["value"]


def stored_type(schema: pa.Schema) -> pa.DataType:
    """The type of what is kept of rows with the columns of ``schema``."""
    return schema.field(0).type if schema.names == _SINGLE else pa.struct(list(schema))


def stored_value(rows: pa.StructArray) -> pa.Array:
    """What is kept of ``rows``."""
    return rows.field(0) if [field.name for field in rows.type] == _SINGLE else rows


def stored_rows(value: pa.Array, schema: pa.Schema) -> pa.StructArray:
    """The rows of which ``value`` was kept."""
    return pa.StructArray.from_arrays([value], fields=list(schema)) if schema.names == _SINGLE else value


class StoredStates(Protocol):
    """What a store holds that has the states of an aggregation instead of its results."""

    def results_of(self, stored: pa.Array) -> pa.Array:
        """The results that stored states stand for."""

    def stored_columns(self, result: pa.DataType) -> pa.Schema:
        """The columns of a stored state, given the type of a result."""
