"""The floor: ``python floor.py WORK TOPICS OUTPUT`` reads the columns that a work needs and writes its answer.

The answer, ``answer.arrow``, lies in OUTPUT already, and beside it how its columns are encoded, ``encodings.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CLICK_COLUMNS = {
    "W1": ["key", "timestamp", "offset", "value.id", "value.amount", "value.currency"],
    "W2": ["key", "timestamp", "offset", "value.id", "value.amount"],
    "W3": ["key", "timestamp", "offset", "value.amount"],
    "W4": ["key", "timestamp", "offset", "value.id", "value.amount"],
}
RATE_COLUMNS = ["key", "timestamp", "offset", "value.rate"]
WORKS_WITH_RATES = ("W2", "W4")
BATCH_ROWS = 1 << 16
ROW_GROUP_ROWS = 1 << 17


def read(topic: Path, columns: list[str]) -> None:
    """All records, of some columns."""
    for file in sorted(topic.glob("partition=*/*.parquet")):
        with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            for _ in parquet.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
                pass


def write(output: Path) -> None:
    """The answer, numbered."""
    encodings = json.loads((output / "encodings.json").read_text(encoding="utf-8"))
    with pa.memory_map(str(output / "answer.arrow")) as mapped, pa.ipc.open_file(mapped) as stored:
        answer = stored.read_all()
        numbered = answer.append_column("offset", pa.array(np.arange(len(answer))))
        pq.write_table(
            numbered,
            output / "answer.parquet",
            row_group_size=ROW_GROUP_ROWS,
            write_page_checksum=True,
            **encodings,
        )


def main(work: str, topics: Path, output: Path) -> None:
    """Reads and writes."""
    read(topics / "clicks", CLICK_COLUMNS[work])
    if work in WORKS_WITH_RATES:
        read(topics / "rates", RATE_COLUMNS)
    write(output)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
