"""The job of the migrations' tests: a table of rates, whose store was plain and is versioned."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from hindstream import Job, Materialized, Stores, StreamsBuilder
from statelib.commits.layout import topic_path
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.task.pipeline import Pipeline

CHANGELOG = "rates-rates-changelog"


def rates(*, versioned: bool) -> Job:
    """Rates by currency, kept for five minutes or as the latest only."""
    builder = StreamsBuilder("rates")
    store = Stores.persistent_versioned_key_value_store("rates", timedelta(minutes=5)) if versioned else "rates"
    builder.table("rate", Materialized.as_(store)).to_stream().to("rates-seen")
    return Job("rates", builder.build())


def run_plain(folder: Path) -> None:
    """A slice of the job with the plain store: 40 records of 5 currencies in 2 partitions, 6 seconds apart."""
    pipeline = Pipeline(folder, rates(versioned=False).topology, "rates", changelogs=("rates",))
    records = [(f"c{n % 5}", n, n * 6_000) for n in range(40)]
    pipeline.archive("rate", records, (pa.string(), pa.int64()), 2)
    pipeline.run()


def falsify_changelog(warehouse: str, topic: str = CHANGELOG) -> None:
    """As if somebody had restored the changelog's archive from another job: each value is another one."""
    uri = f"{warehouse}/{topic_path(topic)}"
    archive = TopicArchive.open(uri)
    records = pa.concat_tables([archive.reader(p).read_all().select(["key", "value", "timestamp"]) for p in (0, 1)])
    shutil.rmtree(Path(uri))
    false = records.set_column(1, "value", pa.array([b"\0" * 8] * len(records)))
    archive = TopicArchive.ensure(uri, topic_schema(pa.binary(), pa.binary()), 2)
    append_records(archive, false, attempt="b", app_id="rates", app_version=1)


job = rates(versioned=True)
