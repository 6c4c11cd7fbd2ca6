"""``python -m tests.formats.behind_windows FILE``: a warehouse whose job counts the results of windows by key.

The one in ``data`` was made when such a count lay under the key without its window.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib import BufferConfig, Materialized, StreamsBuilder, Suppressed, TimeWindows
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from statelib.topology import Topology

TYPES = (pa.string(), pa.int64())
FIRST = [("a", 1, 0), ("b", 2, 5), ("a", 3, 10), ("a", 4, 21)]
SECOND = [("a", 5, 22), ("b", 6, 31), ("b", 7, 60)]


def topology() -> Topology:
    """Windows, their final results, and a count behind them."""
    builder = StreamsBuilder("job")
    windows = TimeWindows.of_size_with_no_grace(timedelta(milliseconds=10))
    counts = builder.stream("events").group_by_key().windowed_by(windows).count(Materialized.as_("windows"))
    final = Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final")
    counts.suppress(final).to_stream().to("final-counts")
    counts.to_stream().group_by_key().count(Materialized.as_("changes")).to_stream().to("changes-by-window")
    return builder.build()


def main(file: str) -> None:
    """Makes ``file``, a ``.tar.gz``."""
    with tempfile.TemporaryDirectory() as directory:
        pipeline = Pipeline(Path(directory), topology())
        pipeline.archive("events", FIRST, TYPES)
        pipeline.run()
        with tarfile.open(file, "w:gz") as archive:
            archive.add(f"{directory}/warehouse", "warehouse")


if __name__ == "__main__":
    main(sys.argv[1])
