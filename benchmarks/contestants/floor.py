"""The floor: pyarrow reads the columns that a work needs and writes the work's output, and does nothing between."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.contestants.script import Script
from benchmarks.works import WORKS
from statelib.topics.parquet.encodings import column_encodings

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.dataset import Dataset
    from benchmarks.works import Work


class Floor(Script):
    """Reads and writes with the settings of a topic archive; the answer lies ready in memory-mapped Arrow files."""

    name = "floor"
    title = "pyarrow, reading and writing only"
    settings = (
        "one thread; reads the columns that the work needs, writes the answer (made before) as Parquet with the same "
        "settings as a topic archive: zstd, checksums, encodings"
    )
    is_exact = True
    agrees = tuple(WORKS)
    script = "floor.py"

    def lay_out(self, work: Work, dataset: Dataset, output: Path) -> None:
        """The answer that Hindstream has given, and how its columns are encoded."""
        output.mkdir(parents=True)
        shutil.copyfile(answer_path(dataset, work), output / "answer.arrow")
        with pa.memory_map(str(output / "answer.arrow")) as mapped, pa.ipc.open_file(mapped) as stored:
            answer = stored.read_all()
            encodings = column_encodings(answer.append_column("offset", pa.array(np.arange(len(answer)))))
        (output / "encodings.json").write_text(json.dumps(encodings), encoding="utf-8")


def answer_path(dataset: Dataset, work: Work) -> Path:
    """Where the runner keeps the answer of a work, as an Arrow file."""
    return dataset.folder / f"answer-{work.name}.arrow"
