"""What it costs to load files into a topic, beside DuckDB, which reads the same file and writes its rows sorted."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import TYPE_CHECKING, ClassVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.processes import in_fresh_process

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIB = 1 << 20
_USERS = 20_000
_COUNTRIES = ("DE", "FR", "IT", "UK", "US")
_FIRST_MS = 1_577_836_800_000  # 2020


@dataclass
class Ingest(Measurement):
    """One file each of Parquet and JSON lines, in pairs of processes; and one file that is far larger than memory.

    Attributes:
        rows: Of the Parquet file; JSON has half of them.
        large_gib: Of the large file of JSON lines; 0: none.
        pairs: Of runs of both, in turn; the median of their ratios counts.
    """

    name: ClassVar[str] = "ingest"

    rows: int = 4_000_000
    large_gib: int = 5
    pairs: int = 3

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        in_fresh_process(_write, folder, self.rows)
        for kind, at_most, rows in (("parquet", 2, self.rows), ("json", 3, self.rows // 2)):
            yield self._compared(folder, kind, at_most, rows)
        if self.large_gib:
            yield self._large(folder)

    def _compared(self, folder: Path, kind: str, at_most: float, rows: int) -> Figure:
        file = folder / f"rows.{kind}"
        ours, theirs, peaks = [], [], []
        for pair in range(self.pairs):
            for of_duckdb in (True, False) if pair % 2 else (False, True):
                if of_duckdb:
                    theirs.append(in_fresh_process(_duckdb, file, folder / "sorted.parquet"))
                else:
                    seconds, peak = in_fresh_process(_load, file, folder / "warehouse", folder / "spill")
                    ours.append(seconds)
                    peaks.append(peak)
                    _remove(folder)
        ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
        return Figure(
            f"CPU of DuckDB's: {kind}, {rows:,} rows, {file.stat().st_size / _MIB:,.0f} MiB",
            median(ratios),
            "times",
            at_most=at_most,
            details={
                "ours, us a row": median(ours) / rows * 1e6,
                "DuckDB's": median(theirs) / rows * 1e6,
                "peak MiB": max(peaks) / _MIB,
                "each pair": ", ".join(f"{ratio:.2f}" for ratio in ratios),
            },
        )

    def _large(self, folder: Path) -> Figure:
        small, large = folder / "rows.json", folder / "large.json"
        with large.open("wb") as out:
            while out.tell() < self.large_gib << 30:
                out.write(small.read_bytes())
        seconds, peak = in_fresh_process(_load, large, folder / "warehouse", folder / "spill")
        _remove(folder)
        size = large.stat().st_size
        large.unlink()
        return Figure(
            f"peak memory of a load: JSON, {size / (1 << 30):.1f} GiB",
            peak / _MIB,
            "MiB",
            at_most=1024,
            details={"CPU, s": seconds},
        )


def _remove(folder: Path) -> None:
    for name in ("warehouse", "spill"):
        rmtree(folder / name)


def _write(folder: Path, rows: int) -> None:
    random = np.random.default_rng(1)
    times = _FIRST_MS + np.arange(rows) * 40 + random.integers(-60_000, 60_000, rows)
    users = pa.array([f"user-{n}" for n in range(_USERS)])
    table = pa.table(
        {
            "id": random.integers(0, 1 << 40, rows),
            "user": users.take(pa.array(random.integers(0, _USERS, rows))),
            "ts": pa.array(times).cast(pa.timestamp("ms", "UTC")),
            "price": np.round(random.random(rows) * 1000, 2),
            "qty": random.integers(1, 100, rows).astype(np.int32),
            "country": pa.array(_COUNTRIES).take(pa.array(random.integers(0, len(_COUNTRIES), rows))),
        }
    )
    pq.write_table(table, folder / "rows.parquet", row_group_size=1 << 17)
    text = "strftime(ts at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')"
    chosen = f"select * replace ({text} as ts) from '{folder}/rows.parquet' limit {rows // 2}"
    duckdb.sql(f"copy ({chosen}) to '{folder}/rows.json' (format json)")


def _duckdb(file: Path, to: Path) -> float:
    """CPU seconds, without the import."""
    import time  # noqa: PLC0415

    began = time.process_time()
    duckdb.sql(f"copy (select * from '{file}' order by ts) to '{to}' (format parquet)")
    return time.process_time() - began


def _load(file: Path, warehouse: Path, spill: Path) -> tuple[float, int]:
    """CPU seconds without the imports and the kernels' code, and the process' peak of resident memory in bytes."""
    import resource  # noqa: PLC0415
    import time  # noqa: PLC0415

    from statelib.ingest.load import Load, load_here  # noqa: PLC0415
    from statelib.ingest.stages import no_progress  # noqa: PLC0415
    from statelib.job.lake_topic import LakeTopic  # noqa: PLC0415
    from statelib.kernels.compiled import load_kernels  # noqa: PLC0415
    from statelib.settings.settings import load_settings  # noqa: PLC0415
    from statelib.storage import Storage  # noqa: PLC0415

    load_kernels()
    began = time.process_time()
    topic = LakeTopic("rows", str(file), key="user", timestamp="ts")
    load = Load(topic, Storage(str(warehouse)), {}, "fail", attempt="0" * 15, now_ms=0)
    budget_bytes = load_settings({}, environ={}).memory_budget_bytes
    load_here(load, Storage(str(spill)), budget_bytes, no_progress)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.process_time() - began, peak * (1 if sys.platform == "darwin" else 1024)
