"""Values of any type as bytes that say of which type they are, for states whose type the results do not tell.

::

    name of the Arrow type, UTF-8 | 0 | the value, as `statelib.serdes.serde_for` writes it

A null is null.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.errors.kinds import ConfigurationError
from statelib.serdes import serde_for


def tagged(values: pa.Array) -> pa.Array:
    """The bytes of values; binary."""
    data = serde_for(values.type).serialize(values).cast(pa.binary())
    return pc.binary_join_element_wise(pa.scalar(_tag(values.type)), data, pa.scalar(b""))


def untagged(data: pa.Array, of: pa.DataType) -> pa.Array:
    """The values of type ``of``.

    Raises:
        ConfigurationError: They are of another type.
    """
    tag = _tag(of)
    there = data.drop_null()
    if not pc.all(pc.starts_with(there, tag), min_count=0).as_py():
        (first, *_) = there.filter(pc.invert(pc.starts_with(there, tag)))
        raise ConfigurationError(
            f"what an aggregation compares has changed from {first.as_py().split(bytes(1))[0].decode()} to {of}",
            next_step="cast it to the type that it had, or let the store begin empty: --set reset_stores=NAME",
        )
    untagged_bytes = [one[len(tag) :] for one in there.to_pylist()]  # Arrow's binary_slice fails on slices of arrays
    return scatter(serde_for(of).deserialize(pa.array(untagged_bytes, pa.binary())), valid_of(data))


def _tag(of: pa.DataType) -> bytes:
    return str(of).encode() + bytes(1)
