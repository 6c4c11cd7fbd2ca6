"""Flink's SQL, in a cluster within one process, with state on the heap and in RocksDB."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from benchmarks.contestants.script import PEERS
from benchmarks.nexmark.answers import ANSWERS
from benchmarks.nexmark.contestants import row_files
from benchmarks.nexmark.contestants.contestant import Contestant
from benchmarks.nexmark.contestants.flink_queries import FLINK_QUERIES
from benchmarks.nexmark.dataset import Dataset
from benchmarks.nexmark.generator import AUCTION, BID, PERSON

PROJECT = PEERS / "flink"
TOPICS = {"person": PERSON, "auction": AUCTION, "bid": BID}
_JVM = (
    "-XX:+UseParallelGC",
    "-Xmx12g",  # q7 keeps all bids: of ten million, four gigabytes are not enough
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.time=ALL-UNNAMED",
)
_SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.memory.managed.size": "1g",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
    "pipeline.object-reuse": "true",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.interval": "3min",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.checkpoints-after-tasks-finish": "false",  # else some wait for the next checkpoint
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "table.local-time-zone": "UTC",
}
"""Those of the original's guide, for one process with two threads."""


class Flink(Contestant):
    """State on the heap."""

    name = "flink"
    title = "Flink, heap"
    settings = (
        "2.3.0, SQL, streaming mode, a cluster within one process, parallelism 2, parallel GC, 12 GiB; settings of "
        "nexmark's guide (mini-batches of 2 s, split distinct aggregations, exactly-once checkpoints every 3 minutes), "
        "object reuse; a table for each topic, read from files of rows in a compact binary form; every change is "
        "written as text; state on the heap"
    )
    queries = tuple(FLINK_QUERIES)
    backend: ClassVar[str] = "hashmap"

    def build(self) -> None:
        """With Maven, into ``target`` beside the sources."""
        if not (Path(os.environ.get("JAVA_HOME", "")) / "bin" / "javac").exists() or not shutil.which("mvn"):
            raise SystemExit(
                "Flink needs a JDK 17 or 21 and Maven. On Debian and Ubuntu: apt-get install "
                "openjdk-17-jdk-headless maven; a JDK elsewhere: JAVA_HOME=/path/to/jdk ./dev bench --nexmark"
            )
        subprocess.run(["mvn", "-q", "-B", "package"], cwd=PROJECT, check=True)

    def prepare(self, dataset: Dataset) -> None:
        """Each partition in a file."""
        row_files.write(dataset)

    def lay_out(self, query: str, dataset: Dataset, output: Path) -> None:
        """The statements and the settings."""
        (output / "answer").mkdir(parents=True)
        folder = row_files.folder_of(dataset)
        sink = ", ".join(f"`{name}` {_sql_type(type_)}" for name, type_ in ANSWERS[query].types().items())
        statements = [
            *(_source(topic, fields, folder, dataset.parameters.partitions) for topic, fields in TOPICS.items()),
            _side_input(folder, dataset.parameters.partitions),
            f"CREATE TABLE answer ({sink}) WITH ('connector' = 'answer', 'folder' = '{output / 'answer'}')",
            f"INSERT INTO answer {FLINK_QUERIES[query]}",
        ]
        (output / "statements.sql").write_text("\n;\n".join(statements), encoding="utf-8")
        settings = {
            **_SETTINGS,
            "state.backend.type": self.backend,
            "execution.checkpointing.dir": (output / "checkpoints").as_uri(),
            "io.tmp.dirs": str(output),
        }
        lines = "".join(f"{name}: {value}\n" for name, value in settings.items())
        (output / "settings").write_text(lines, encoding="utf-8")

    def command(self, query: str, dataset: Dataset, output: Path) -> list[str]:
        """See ``Nexmark.java``."""
        target = PROJECT / "target"
        return [
            str(Path(os.environ["JAVA_HOME"]) / "bin" / "java"),
            "-cp",
            f"{target / 'classes'}{os.pathsep}{target / 'lib'}/*",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            *_JVM,
            "hindstream.benchmarks.nexmark.Nexmark",
            str(output / "statements.sql"),
            str(output / "settings"),
        ]

    def answer(self, query: str, output: Path) -> str:
        """What the changes come to."""
        types = {"change": "BIGINT"} | {
            name: "BIGINT" if type_.startswith("TIMESTAMP") else type_ for name, type_ in ANSWERS[query].types().items()
        }
        columns = ", ".join(f"'{name}': '{type_}'" for name, type_ in types.items())
        lines = (
            f"read_csv('{output}/answer/*', delim = '\t', quote = '', escape = '', header = false, nullstr = '\1', "
            f"auto_detect = false, "
            f"columns = {{{columns}}})"
        )
        shown = ", ".join(
            f"epoch_ms({name}) AS {name}" if type_.startswith("TIMESTAMP") else name
            for name, type_ in ANSWERS[query].types().items()
        )
        left = f"SELECT * EXCLUDE change, sum(change) AS left_ FROM {lines} GROUP BY ALL HAVING left_ != 0"
        return f"SELECT {shown} FROM ({left}), range(left_::BIGINT)"


class FlinkRocksDb(Flink):
    """State in RocksDB."""

    name = "flink-rocksdb"
    title = "Flink, RocksDB"
    settings = "the same, with state in RocksDB (1 GiB of managed memory) and incremental checkpoints"
    backend = "rocksdb"


def _source(topic: str, fields: pa.StructType, folder: Path, partitions: int) -> str:
    columns = [f"`{field.name}` {_sql_type(_duckdb_type(field.type))}" for field in fields]
    watermark = "WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND"
    kinds = "".join(_kind(field.type) for field in fields)
    return f"CREATE TABLE {topic} ({', '.join(columns)}, {watermark}) {_connected(topic, folder, partitions, kinds)}"


def _side_input(folder: Path, partitions: int) -> str:
    connected = _connected("side_input", folder, partitions, "KS")
    return f"CREATE TABLE side_input (`key` BIGINT, `value` STRING) {connected}"


def _connected(topic: str, folder: Path, partitions: int, kinds: str) -> str:
    options = {"connector": "events", "files": folder / topic, "partitions": partitions, "kinds": kinds}
    given = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return f"WITH ({given})"


def _kind(type_: pa.DataType) -> str:
    return "S" if pa.types.is_string(type_) else "T" if pa.types.is_timestamp(type_) else "L"


def _duckdb_type(type_: pa.DataType) -> str:
    return {"S": "VARCHAR", "T": "TIMESTAMP_MS", "L": "BIGINT"}[_kind(type_)]


def _sql_type(duckdb_type: str) -> str:
    return {"VARCHAR": "STRING", "TIMESTAMP_MS": "TIMESTAMP(3)"}.get(duckdb_type, duckdb_type)
