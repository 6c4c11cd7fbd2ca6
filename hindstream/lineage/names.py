"""What OpenLineage calls our data and runs.

Source: OpenLineage's naming conventions for datasets, and its run ids, which are UUIDs.
"""

from __future__ import annotations

import hashlib
import re
from itertools import takewhile
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from statelib.ingest.sources import delta_tables, iceberg_tables
from statelib.ingest.sources.find import absolute, is_pattern
from statelib.ingest.sources.queries import is_query

_SAME_STORE = {"s3a": "s3", "gcs": "gs", "abfs": "abfss"}
_KAFKA_PORT = 9092
_VERSION = re.compile(r"@\d+$")


class DatasetName(NamedTuple):
    """The two names of a dataset."""

    namespace: str
    name: str


def dataset_at(uri: str) -> DatasetName:
    """What data at a path or URL is called: by its store and its place in there."""
    scheme, _, rest = uri.partition("://")
    if not rest and "://" not in uri:
        return DatasetName("file", uri)
    if scheme == "file":
        return DatasetName("file", urlsplit(uri).path)
    if scheme == "memory":
        return DatasetName("inmemory://", rest.strip("/"))
    host, _, path = rest.partition("/")
    return DatasetName(f"{_SAME_STORE.get(scheme, scheme)}://{host}", path.strip("/"))


def lake_source(source: str) -> DatasetName | None:
    """What a source of files is called: a pattern by the folder of all that it matches, a table by its place.

    Args:
        source: See `statelib.ingest.sources.find`.

    Returns:
        None: a query, whose tables only Spark knows.
    """
    if is_query(source):
        return None
    for prefix in (iceberg_tables.PREFIX, delta_tables.PREFIX):
        if source.startswith(prefix):
            table = _VERSION.sub("", source.removeprefix(prefix))
            if prefix == iceberg_tables.PREFIX and not iceberg_tables.is_path(table):
                catalog, _, name = table.partition(".")
                return DatasetName(f"iceberg://{catalog}", name)
            return dataset_at(absolute(table))
    plain = takewhile(lambda part: not is_pattern(part), absolute(source).split("/"))
    return dataset_at("/".join(plain))


def kafka_topic(bootstrap_servers: str, topic: str) -> DatasetName:
    """What a topic of a Kafka cluster is called: by the first of the servers."""
    first = bootstrap_servers.split(",", maxsplit=1)[0].strip().rpartition("://")[2]
    host, colon, _ = first.rpartition(":")
    return DatasetName(f"kafka://{first if colon and host else f'{first}:{_KAFKA_PORT}'}", topic)


def run_uuid(time_ms: int, *names: str) -> UUID:
    """A UUID of version 7 (RFC 9562) whose random part is a hash: all phases of a run come to the same.

    Args:
        time_ms: Milliseconds since 1970: later runs have larger ids.
        names: What tells the run from all others.
    """
    hashed = int.from_bytes(hashlib.sha256("\0".join(names).encode()).digest()[:10])
    number = (time_ms & (2**48 - 1)) << 80 | hashed
    number = number & ~(0xF << 76) | 7 << 76
    return UUID(int=number & ~(0b11 << 62) | 0b10 << 62)
