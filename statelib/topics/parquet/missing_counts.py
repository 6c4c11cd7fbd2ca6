"""How many values are missing in those columns of a topic's file that have no statistics to say so.

The footer's key-value metadata has them under `KEY`, as JSON by Parquet column, with the file's seal around it
(`statelib.topics.parquet.footer`)::

    hindstream.missing   {"key": 0, "value.id": 17}

A reader that does not know the key passes over it. Other contents would get another key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from statelib.topics.parquet.leaf_columns import leaves

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    import pyarrow.parquet as pq

KEY = b"hindstream.missing"


class MissingCounts:
    """Counts while a file is written.

    Args:
        columns: Of the file, those to count in: Parquet columns outside of lists and maps.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._counts = dict.fromkeys(sorted(columns), 0)

    def add(self, records: pa.Table) -> None:
        """Counts a row group."""
        for name in {column.partition(".")[0] for column in self._counts}:
            for chunk in records.column(name).chunks:
                for column, values in leaves(name, chunk):
                    if values is not None and column in self._counts:
                        self._counts[column] += values.null_count

    def metadata(self) -> dict[bytes, str]:
        """For the footer."""
        return {KEY: json.dumps(self._counts)} if self._counts else {}


def missing_values(metadata: pq.FileMetaData, column: str) -> int | None:
    """How many values of a Parquet column are missing in a file; None: this is not said here."""
    said: dict[str, int] = json.loads((metadata.metadata or {}).get(KEY, b"{}"))
    return said.get(column)
