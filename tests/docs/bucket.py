"""What `docs/bucket-to-cluster.md` begins with: a bucket that Kafka Connect has filled, a Spark cluster, an Airflow."""

from __future__ import annotations

import random
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import obstore
from deltalake import DeltaTable
from obstore.store import S3Store

from tests.hindstream.airflow.airflow_environ import AIRFLOW, airflow_environ
from tests.ingest.connect_layout import Confluent, write_confluent
from tests.ingest.connect_trees import Sent
from tests.spark_cluster import spark_cluster
from tests.storage.s3 import REGION, S3Server, s3_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pytest

BUCKETS = ("kafka", "lake")
_JANUARY_MS = 1_704_067_200_000
_DAY_MS = 86_400_000
_COUNTRIES = ("DE", "FR", "IT", "NL")

MOST_HELD = 8
"""Windows of the last two days, of four countries: they wait for late orders."""

Answer = dict[tuple[str, int], tuple[int, float]]
"""By country and beginning of the day in milliseconds: how many orders, and their sum."""


@dataclass(frozen=True)
class Place:
    """All servers of the page, on loopback.

    Attributes:
        replaced: What stands in their places on the page.
        environ: Of whoever types the page's commands.
    """

    s3: S3Server
    replaced: dict[str, str]
    environ: dict[str, str]


@contextmanager
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Starts them; the bucket has three months of orders."""
    with s3_server(folder, *BUCKETS) as s3:
        for name, value in s3.credentials.items():
            monkeypatch.setenv(name, value)  # the workers of the cluster have them too
        upload(s3, folder / "connect", orders(range(1_500)))
        with spark_cluster(folder, "127.0.0.2") as cluster:
            home = folder / "airflow"
            (home / "dags").mkdir(parents=True)
            replaced = {
                "spark://spark-master:7077": cluster.url,
                "https://minio.example.com": s3.endpoint,
                "/var/lib/hindstream": str(folder / "state"),
                'aws_region = "us-east-1"': f'aws_region = "{REGION}"\nallow_http = "true"',
            }
            environ = {**airflow_environ(home), **s3.credentials}
            subprocess.run([AIRFLOW, "db", "migrate"], env=environ, check=True, capture_output=True)
            yield Place(s3, replaced, environ)


def orders(numbers: range) -> list[Sent]:
    """Orders of two partitions, 500 of each in 30 days; one in forty is there twice."""
    sent = []
    for partition in range(2):
        for number in numbers:
            chance = random.Random(2 * number + partition)
            at_ms = _JANUARY_MS + number * 30 * _DAY_MS // 500 + partition * 60_000
            value = {
                "order_id": f"o-{partition}-{number}",
                "ordered_at": at_ms,
                "country": chance.choice(_COUNTRIES),
                "amount": chance.randrange(20, 800) / 4,
            }
            first = number + -(-number // 40)  # one in forty before it took two offsets
            offsets = [first, first + 1] if number % 40 == 0 else [first]
            sent += [Sent(partition, offset, at_ms, None, value) for offset in offsets]
    return sent


def upload(s3: S3Server, folder: Path, records: Sequence[Sent]) -> None:
    """Puts files into the bucket as Confluent's sink does."""
    write_confluent(folder, records, Confluent("orders", flush_size=500))
    store = S3Store(
        "kafka",
        endpoint=s3.endpoint,
        region=REGION,
        access_key_id=s3.credentials["AWS_ACCESS_KEY_ID"],
        secret_access_key=s3.credentials["AWS_SECRET_ACCESS_KEY"],
        client_options={"allow_http": True},
    )
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        obstore.put(store, str(file.relative_to(folder)), file.read_bytes())


def answer(s3: S3Server) -> Answer:
    """What the sink has."""
    table = DeltaTable("s3://lake/warehouse/topics/orders-by-day", storage_options=s3.options).to_pyarrow_table()
    return {
        (row["key"]["key"], int(row["key"]["window_start"].timestamp() * 1000)): (
            row["value"]["records"],
            row["value"]["total"],
        )
        for row in table.to_pylist()
    }


def recomputed(sent: list[Sent]) -> Answer:
    """From what Connect was given: each order once, however often it was sent."""
    made: Answer = {}
    for order in {one.value["order_id"]: one.value for one in sent}.values():
        day_ms = order["ordered_at"] // 86_400_000 * 86_400_000
        count, total = made.get((order["country"], day_ms), (0, 0.0))
        made[order["country"], day_ms] = (count + 1, total + order["amount"])
    return made
