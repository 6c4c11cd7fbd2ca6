"""Reads the rows that differ, and no others: in chunks of keys that fit into memory."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import taken_rows
from statelib.columns.windowed_type import archived
from statelib.comparison.buckets import bits_for, bucket_of
from statelib.comparison.sides import first_place, placed_batches, runs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from statelib.comparison.matches import Resources
    from statelib.comparison.sides import Side

PLACE = "place"
_MOST_CHUNK_BITS = 8
_GAP_ROWS = 1 << 16
_SHARE = 8


class DifferingRows:
    """The rows of one side at some places.

    Args:
        side: The side.
        places: int64, of the rows, in any order.
        keys: uint64, the hashes of their keys, which decide the chunk.
        bits: There are ``1 << bits`` chunks.
        name: Of files, if there are several chunks.
        scratch: A folder for them.
    """

    def __init__(
        self, side: Side, places: NDArray[np.int64], keys: NDArray[np.uint64], bits: int, name: str, scratch: Path
    ) -> None:
        self._side = side
        self._files = [scratch / f"{name}-{chunk}" for chunk in range(1 << bits)] if bits else []
        self._schema: pa.Schema | None = None
        order = np.argsort(places)
        self._places = places[order]
        self._chunks = bucket_of(keys[order], bits).astype(np.int64)
        self._held: list[pa.RecordBatch] = []
        if bits:
            self._spill()
        else:
            self._held = list(self._read())

    def chunk(self, number: int) -> pa.Table | None:
        """The rows of a chunk, ordered by place, in the columns of the side and ``place``; None: there are none."""
        if not self._files:
            batches = self._held
        else:
            file = self._files[number]
            if not file.exists():
                return None
            with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as reader:
                batches = list(reader)
            file.unlink()
        if not batches:
            return None
        table = pa.Table.from_batches(batches)
        return table.take(pa.array(np.argsort(table.column(PLACE).to_numpy())))

    def _spill(self) -> None:
        with ExitStack() as files:
            writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
            for batch in self._read():
                chunks = self._chunks[np.searchsorted(self._places, batch.column(PLACE).to_numpy())]
                for chunk in np.unique(chunks).tolist():
                    if chunk not in writers:
                        sink = files.enter_context(pa.OSFile(str(self._files[chunk]), "wb"))
                        writers[chunk] = files.enter_context(pa.ipc.new_stream(sink, batch.schema))
                    writers[chunk].write_batch(taken_rows(batch, np.flatnonzero(chunks == chunk)))

    def _read(self) -> Iterator[pa.RecordBatch]:
        for stretch in (*self._side.shared, *self._side.own):
            least = first_place(stretch.partition, stretch.start)
            most = (
                first_place(stretch.partition + 1)
                if stretch.end is None
                else first_place(stretch.partition, stretch.end)
            )
            first, end = np.searchsorted(self._places, [least, most])
            zero = first_place(stretch.partition)
            for run in runs_of(self._places[first:end], _GAP_ROWS):
                for place, batch in placed_batches(stretch, int(run[0]) - zero, int(run[-1]) + 1 - zero):
                    low, high = np.searchsorted(run, [place, place + len(batch)])
                    if low < high:
                        yield _chosen(batch, run[low:high], place)


def chunk_bits(a: Side, b: Side, rows: int, resources: Resources) -> int:
    """How many bits of the keys' hashes tell chunks apart that fit into memory together with all that is made of them.

    Args:
        a: A side.
        b: The other one.
        rows: How many rows differ on both.
        resources: What there is.
    """
    row_bytes = 1
    for side in (a, b):
        batch = next((batch for _, batch in side.batches()), None)
        if batch is not None and len(batch):
            row_bytes = max(row_bytes, batch.nbytes // len(batch))
    return min(bits_for(rows, max(resources.budget_bytes // (_SHARE * row_bytes), 1)), _MOST_CHUNK_BITS)


def _chosen(batch: pa.RecordBatch, places: NDArray[np.int64], first: int) -> pa.RecordBatch:
    rows = taken_rows(batch, places - first)
    key = rows.column("key")
    if isinstance(key, pa.DictionaryArray):
        key = key.dictionary_decode()
    columns = {name: rows.column(name) for name in rows.schema.names if name not in {"key", "offset"}}
    return pa.RecordBatch.from_pydict({"key": archived(key), **columns, PLACE: pa.array(places)})
