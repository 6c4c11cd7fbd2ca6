"""What a quarantined record says of the one that could not be used."""

from __future__ import annotations

import pyarrow as pa

from statelib.topics.parquet.schema import topic_schema

VALUE_TYPE = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("value", pa.binary()),
    ]
)
"""Where it came from, why it could not be used, its timestamp as it was (milliseconds, null if it had none) and its
value's bytes. Its key's bytes are the quarantined record's key. Of a row of a file the headers say more: ``file``,
``row`` and ``field``."""

QUARANTINE_SCHEMA = topic_schema(pa.binary(), VALUE_TYPE)
"""The columns of a quarantine's archive."""
