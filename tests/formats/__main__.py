"""``python -m tests.formats FILE``: makes the warehouse that later versions have to read."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from statelib.commits import Retention, maintain
from statelib.storage import Storage
from tests.commits import toy
from tests.formats.slices import JOB, run_slice


def main(file: str) -> None:
    """Makes ``file``, a ``.tar.gz``."""
    with tempfile.TemporaryDirectory() as directory:
        warehouse = Storage(f"{directory}/warehouse")
        toy.archive_events(warehouse, 0, 2)
        run_slice(warehouse, Path(directory) / "scratch", days=1)
        maintain(warehouse, JOB, Retention(1), now_ms=0)
        with tarfile.open(file, "w:gz") as archive:
            archive.add(f"{directory}/warehouse", "warehouse")


if __name__ == "__main__":
    main(sys.argv[1])
