"""The floor: pyarrow reads the columns that a work needs and writes the work's output, and does nothing between."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contestants.contestant import Contestant
from benchmarks.dataset import CLICKS, RATES, Dataset
from benchmarks.works import WORKS
from statelib.topics.encodings import column_encodings

if TYPE_CHECKING:
    from benchmarks.works import Work

_COLUMNS = {
    "W1": ["key", "timestamp", "offset", "value.id", "value.amount", "value.currency"],
    "W2": ["key", "timestamp", "offset", "value.id", "value.amount"],
    "W3": ["key", "timestamp", "offset", "value.amount"],
    "W4": ["key", "timestamp", "offset", "value.id", "value.amount"],
}
_RATE_COLUMNS = ["key", "timestamp", "offset", "value.rate"]
_BATCH_ROWS = 1 << 16
_ROW_GROUP_ROWS = 1 << 17


class Floor(Contestant):
    """Reads and writes with the settings of a topic archive; the answer lies ready in memory-mapped Arrow files."""

    name = "floor"
    title = "pyarrow, reading and writing only"
    settings = (
        "one thread; reads the columns that the work needs, writes the answer (made before) as Parquet with the same "
        "settings as a topic archive: zstd, checksums, encodings"
    )
    is_exact = True
    agrees = tuple(WORKS)

    def lay_out(self, work: Work, dataset: Dataset, output: Path) -> None:
        """The answer that Hindstream has given."""
        output.mkdir(parents=True)
        shutil.copyfile(answer_path(dataset, work), output / "answer.arrow")

    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """See `main`."""
        return self.module(work.name, dataset.folder, output)


def answer_path(dataset: Dataset, work: Work) -> Path:
    """Where the runner keeps the answer of a work, as an Arrow file."""
    return dataset.folder / f"answer-{work.name}.arrow"


def main(work: str, dataset: str, output: str) -> None:
    """Reads and writes."""
    read = Dataset.open(Path(dataset))
    for topic, columns in ((CLICKS, _COLUMNS[work]), (RATES, _RATE_COLUMNS)):
        if topic == CLICKS or WORKS[work].with_rates:
            for partition in range(read.parameters.partitions):
                for file in read.files(topic, partition):
                    with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
                        for _ in parquet.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
                            pass
    with pa.memory_map(str(Path(output) / "answer.arrow")) as mapped, pa.ipc.open_file(mapped) as stored:
        answer = stored.read_all()
        numbered = answer.append_column("offset", pa.array(np.arange(len(answer))))
        pq.write_table(
            numbered,
            Path(output) / "answer.parquet",
            row_group_size=_ROW_GROUP_ROWS,
            write_page_checksum=True,
            **column_encodings(numbered),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
