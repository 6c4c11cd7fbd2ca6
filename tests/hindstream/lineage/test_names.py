from __future__ import annotations

import pytest

from hindstream.lineage.names import dataset_at, kafka_topic, lake_source, run_uuid


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("/srv/warehouse/topics/a", "file", "/srv/warehouse/topics/a"),
        ("file:///srv/topics/a", "file", "/srv/topics/a"),
        ("s3://bucket/lake/topics/a", "s3://bucket", "lake/topics/a"),
        ("s3a://bucket/topics/a/", "s3://bucket", "topics/a"),
        ("gs://bucket/topics/a", "gs://bucket", "topics/a"),
        (
            "abfss://container@account.dfs.core.windows.net/topics/a",
            "abfss://container@account.dfs.core.windows.net",
            "topics/a",
        ),
        ("memory:///topics/a", "inmemory://", "topics/a"),
    ],
)
def test_data_by_store_and_place(uri: str, namespace: str, name: str) -> None:
    assert dataset_at(uri) == (namespace, name)


@pytest.mark.parametrize(
    ("servers", "namespace"),
    [
        ("broker:9093,other:9092", "kafka://broker:9093"),
        ("broker", "kafka://broker:9092"),
        ("SASL_SSL://broker:9094", "kafka://broker:9094"),
    ],
)
def test_topics_of_kafka_by_the_first_server(servers: str, namespace: str) -> None:
    assert kafka_topic(servers, "totals") == (namespace, "totals")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/lake/2013.parquet", ("file", "/lake/2013.parquet")),
        ("/lake/*/part-*.csv.gz", ("file", "/lake")),
        ("s3://lake/flights/**/*.parquet", ("s3://lake", "flights")),
        ("delta:s3://lake/orders@12", ("s3://lake", "orders")),
        ("iceberg:/lake/orders@3051729675", ("file", "/lake/orders")),
        ("iceberg:prod.shop.orders@3051729675", ("iceberg://prod", "shop.orders")),
        ("abfss://box@account.dfs.core.windows.net/a", ("abfss://box@account.dfs.core.windows.net", "a")),
        ("sql:SELECT 1", None),
    ],
)
def test_sources_of_files(source: str, name: tuple[str, str] | None) -> None:
    assert lake_source(source) == name


def test_run_ids_are_of_version_7_and_always_the_same() -> None:
    one = run_uuid(1_700_000_000_000, "namespace", "job", "00000001-1")
    assert str(one) == "018bcfe5-6800-7624-bbe8-b31b17b065ff"
    assert (one.version, one.variant) == (7, "specified in RFC 4122")
    assert one == run_uuid(1_700_000_000_000, "namespace", "job", "00000001-1")
    assert one != run_uuid(1_700_000_000_000, "namespace", "job0", "0000001-1")
    assert one < run_uuid(1_700_000_000_001, "namespace", "job", "00000001-1")
