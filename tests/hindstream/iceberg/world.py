"""A job that publishes two sinks to Iceberg tables, a fork of it, and what readers of the tables have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindstream.iceberg.publish import PublishedToIceberg, publish_to_iceberg
from statelib import IcebergTable, Job
from statelib.commits.archives import open_archive
from statelib.commits.versions.promotion import go_back, promote
from statelib.commits.versions.sink_history import sink_history
from tests.repair.histories import HOUR, archive, forked, topology
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.catalog import Catalog

    from statelib.storage import Storage

TABLES = (IcebergTable("lake.shop.so_far", archive="so-far"), IcebergTable("lake.shop.large"))
SINKS = {"so-far": "shop.so_far", "large": "shop.large"}


@dataclass
class World:
    """See the module. The job has come to hour 30; the fork stands on hour 10, and has come to hour 30 too."""

    directory: Path
    catalog: Catalog
    job: Pipeline
    new: Pipeline

    @classmethod
    def made(cls, directory: Path, catalog: Catalog, warehouse: str | None = None, **settings: Any) -> World:
        job = Pipeline(directory / "job", topology(), warehouse=warehouse, **settings)
        archive(job, seed=1)
        job.run(10 * HOUR)
        new = forked(job, directory / "new", "new", 1, topology(60))
        for one in (job, new):
            one.run(30 * HOUR)
        return cls(directory, catalog, job, new)

    @property
    def warehouse(self) -> Storage:
        return self.job.warehouse

    def declared(self, name: str = "job") -> Job:
        job = Job("job", topology(20 if name == "job" else 60), iceberg_sinks=TABLES)
        return job if name == "job" else job.as_fork(name)

    def publish(self, name: str = "job") -> tuple[PublishedToIceberg, ...]:
        return publish_to_iceberg(self.declared(name), self.warehouse)

    def promote(self, name: str = "new", **more: bool) -> None:
        promote(self.warehouse, name, "job", now_ms=7, **more)

    def back(self) -> None:
        go_back(self.warehouse, "job", now_ms=8)

    def seen(self) -> dict[str, list[dict[str, Any]]]:
        """What readers of the tables have, by partition and offset."""
        found = {}
        for sink, table in SINKS.items():
            rows = self.catalog.load_table(table).scan().to_arrow().to_pylist()
            for row in rows:
                row["headers"] = row["headers"] or None  # pyiceberg reads a list that is null as an empty one
            found[sink] = sorted(rows, key=lambda row: (row["partition"], row["offset"]))
        return found

    def has(self, name: str = "job") -> dict[str, list[dict[str, Any]]]:
        """What readers of the archives have, numbered through."""
        history = sink_history(self.warehouse, name)
        found: dict[str, list[dict[str, Any]]] = {}
        for sink in SINKS:
            rows: dict[int, list[dict[str, Any]]] = {}
            for part in history[sink]:
                reader = open_archive(self.warehouse, part.topic).reader(
                    part.partition, part.first_offset, part.end_offset
                )
                rows.setdefault(part.partition, []).extend(reader.read_all().to_pylist())
            found[sink] = [
                {"partition": partition, **row, "offset": number}
                for partition in sorted(rows)
                for number, row in enumerate(rows[partition])
            ]
        return found
