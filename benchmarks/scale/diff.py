"""``hindstream diff`` of a sink's two versions, against a full outer join by DuckDB on the same Parquet files."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.measure import Cost, measure
from benchmarks.scale.measurement import Figure, Measurement
from hindstream.spark.session.session import WORKER_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.comparison.matches import Matcher

_MIB = 1 << 20
_BATCH_ROWS = 1 << 20
_SPREAD_MS = 1_000
_COUNTS = ("equal", "changed", "only_a", "only_b")


@dataclass
class Diff(Measurement):
    """Two topics of as many keys; a share of B's values differs, and a share of each side's keys is its own.

    Both sides are compared by ``latest``, in a process each: CPU seconds and memory are those of its whole tree.

    Attributes:
        rows: Of each side.
        partitions: Of each topic.
        every: One key in so many is changed, one is only in A, and one only in B.
        memory_mib: What DuckDB may use, as the budget of the comparison is.
        pairs: Of runs, in turn; the median of their ratios counts.
        on_spark: Whether rows are matched on Spark, ``local[2]``, whose start counts too; else in one process.
    """

    name: ClassVar[str] = "diff"

    rows: int = 1_000_000
    partitions: int = 2
    every: int = 10_000
    memory_mib: int = 512
    pairs: int = 3
    on_spark: bool = False

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        self._run("write", folder, folder / "write.json")
        expected = self._expected()
        costs: list[dict[str, Cost]] = []
        for number in range(self.pairs):
            names = ("hindstream", "duckdb")
            pair = {}
            for name in names[:: -1 if number % 2 else 1]:
                answer = folder / f"{name}-{number}.json"
                pair[name] = self._run(name, folder, answer)
                found = json.loads(answer.read_text(encoding="utf-8"))
                if found != expected:
                    raise AssertionError(f"{name} found {found}, not {expected}")
            costs.append(pair)
        size = f"{self.rows:,} rows a side{', on Spark' if self.on_spark else ''}"
        for of, unit in (("cpu_seconds", "CPU"), ("wall_seconds", "wall-clock")):
            ours, theirs = ([getattr(pair[name], of) for pair in costs] for name in ("hindstream", "duckdb"))
            ratio = median(one / other for one, other in zip(ours, theirs, strict=True))
            details = {"hindstream s": median(ours), "DuckDB s": median(theirs)}
            yield Figure(f"{unit} time against DuckDB, {size}", ratio, at_most=2.0, details=details)
        peaks = {name: max(pair[name].peak_memory_bytes for pair in costs) / _MIB for name in ("hindstream", "duckdb")}
        yield Figure(f"peak memory, {size}", peaks["hindstream"], "MiB", details={"DuckDB MiB": peaks["duckdb"]})

    def _run(self, name: str, folder: Path, answer: Path) -> Cost:
        command = [sys.executable, "-m", __name__, name, str(folder), str(answer), json.dumps(asdict(self))]
        as_a_command = {name: value for name, value in os.environ.items() if name not in WORKER_ENVIRONMENT}
        return measure(command, environment=as_a_command, log=folder / f"{name}.log")

    def _expected(self) -> dict[str, int]:
        keys = np.arange(self.rows)
        kinds = [int(np.count_nonzero(keys % self.every == kind)) for kind in (1, 2, 3)]
        changed, only_a, only_b = kinds
        return dict(zip(_COUNTS, (self.rows - sum(kinds), changed, only_a, only_b), strict=True))

    def write(self, folder: Path) -> None:
        """Both topics. Keys that are 1 modulo ``every`` have another value in B, 2 are only in A, and 3 only in B."""
        from statelib.commits.layout import topic_path  # noqa: PLC0415
        from statelib.topics.append import append_records  # noqa: PLC0415
        from statelib.topics.archive import TopicArchive, topic_schema  # noqa: PLC0415

        value = pa.struct([("n", pa.int64()), ("mean", pa.float64()), ("name", pa.string())])
        for side, left_out in (("a", 3), ("b", 2)):
            archive = TopicArchive.ensure(
                str(folder / topic_path(side)), topic_schema(pa.string(), value), self.partitions, topic=side
            )
            for version, first in enumerate(range(0, self.rows, _BATCH_ROWS), 1):
                keys = np.arange(first, min(first + _BATCH_ROWS, self.rows))
                keys = keys[keys % self.every != left_out]
                n = keys * 7 + ((keys % self.every == 1) if side == "b" else 0)
                names = pa.array(np.char.add("name-", (keys % 1000).astype(str)))
                values = pa.StructArray.from_arrays([pa.array(n), pa.array(keys / 3), names], fields=list(value))
                times = pa.array(keys * _SPREAD_MS).cast(pa.timestamp("ms", "UTC"))
                table = pa.table(
                    {"key": pa.array(np.char.add("key-", keys.astype(str))), "value": values, "timestamp": times}
                )
                append_records(
                    archive,
                    table,
                    attempt=f"a{version}",
                    app_id="benchmark",
                    app_version=version,
                    modification_time_ms=0,
                )
                archive = archive.refresh()

    def hindstream(self, folder: Path) -> dict[str, int]:
        """What the comparison finds."""
        from statelib.commits.archives import open_archive  # noqa: PLC0415
        from statelib.commits.versions.sink_history import Segment  # noqa: PLC0415
        from statelib.comparison.compare import compare  # noqa: PLC0415
        from statelib.comparison.matches import Resources  # noqa: PLC0415
        from statelib.comparison.sides import sides_of  # noqa: PLC0415
        from statelib.storage import Storage  # noqa: PLC0415

        warehouse = Storage(str(folder))
        histories = []
        for topic in ("a", "b"):
            archive = open_archive(warehouse, topic)
            ends = archive.end_offsets()
            histories.append((topic, [Segment(topic, partition, 0, end) for partition, end in ends.items()]))
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            matcher = self._matcher(folder) if self.on_spark else None
            resources = Resources(Path(scratch), budget_bytes=self.memory_mib * _MIB, matcher=matcher)
            found = compare(*sides_of(warehouse, histories[0], histories[1]), "latest", resources)
        return {name: getattr(found, name) for name in _COUNTS}

    def _matcher(self, folder: Path) -> Matcher:
        from hindstream.spark.comparison.matches import matcher_on_spark  # noqa: PLC0415
        from statelib.settings.settings import load_settings  # noqa: PLC0415

        return matcher_on_spark(load_settings({"warehouse": str(folder), "spark_master": "local[2]"}, environ={}))

    def duckdb(self, folder: Path) -> dict[str, int]:
        """What a full outer join finds; each key is there once, so that it need not look for the newest values."""
        import duckdb  # noqa: PLC0415

        from statelib.commits.layout import topic_path  # noqa: PLC0415

        files = [sorted((folder / topic_path(side)).rglob("*.parquet")) for side in "ab"]
        sides = [f"read_parquet({[str(one) for one in of if '_delta_log' not in one.parts]})" for of in files]
        with duckdb.connect() as connection, tempfile.TemporaryDirectory(dir=folder) as scratch:
            connection.execute(f"SET memory_limit = '{self.memory_mib}MiB'")
            connection.execute(f"SET temp_directory = '{scratch}'")
            row = connection.execute(
                f"""
                SELECT
                    count(*) FILTER (a.value = b.value AND a.timestamp = b.timestamp),
                    count(*) FILTER (a.value <> b.value OR a.timestamp <> b.timestamp),
                    count(*) FILTER (b.key IS NULL),
                    count(*) FILTER (a.key IS NULL)
                FROM {sides[0]} AS a FULL OUTER JOIN {sides[1]} AS b ON a.key = b.key
                """
            ).fetchone()
        return dict(zip(_COUNTS, row or (), strict=True))


def _main() -> None:
    name, folder, answer, sizes = sys.argv[1:]
    found = getattr(Diff(**json.loads(sizes)), name)(Path(folder))
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    _main()
