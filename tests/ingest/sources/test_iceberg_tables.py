"""An Iceberg table's rows are those of a snapshot, wherever the table is and whoever wrote its files."""

from __future__ import annotations

import datetime as dt
import pickle
import shutil
import subprocess
import sys
import traceback
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyiceberg.utils.config import Config

from statelib.errors.kinds import ConfigurationError, HindstreamError, InputError
from statelib.ingest.load import load_here
from statelib.ingest.stages import no_progress
from statelib.storage import Storage
from statelib.storage.clients import client
from tests.ingest.iceberg import data_files, delete_rows
from tests.ingest.lake import begin, load, records_of, without_nulls
from tests.ingest.sources.iceberg_orders import AT, NAME, numbers_in, rows, table_of, topic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.thorough


BUCKET = "warehouse"


def test_rows_of_a_snapshot(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = table_of(catalog, rows(0, 3), rows(3, 3))
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots())
    load(topic(f"{NAME}@{first}"), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2]
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2, 3, 4, 5]
    assert load(topic(f"{NAME}@{first}"), tmp_path / "w").number is None
    with pytest.raises(ConfigurationError, match="no such snapshot") as caught:
        load(topic(f"{NAME}@7"), tmp_path / "w")
    assert f"{second}, {first}" in str(caught.value.next_step)


def test_values_come_under_the_names_that_the_table_has_now(tmp_path: Path, catalog: SqlCatalog) -> None:
    """A column's id counts: renamed, moved, widened, dropped and made anew with another meaning."""
    schema = Schema(
        NestedField(1, "n", IntegerType()), NestedField(2, "at", LongType()), NestedField(3, "price", IntegerType()),
        NestedField(4, "kind", StringType()),
    )  # fmt: skip
    table = catalog.create_table("shop.orders", schema)
    old = pa.table({"n": [1], "at": [AT], "price": [5], "kind": ["old"]}).cast(table.schema().as_arrow())
    table.append(old)
    with table.update_schema() as update:
        update.rename_column("n", "number")
        update.update_column("n", LongType())
        update.move_first("price")
        update.delete_column("kind")
    with table.update_schema() as update:
        update.add_column("kind", DoubleType())
        update.rename_column("price", "n")
    new = pa.table({"n": [6], "number": [2**40], "at": [AT + 1], "kind": [0.5]})
    table.append(new.cast(table.schema().as_arrow()))
    load(topic(), tmp_path / "w")
    values = [without_nulls(record["value"]) for record in records_of(tmp_path / "w", "t")]
    assert values == [{"n": 5, "number": 1}, {"n": 6, "number": 2**40, "kind": 0.5}]
    load(topic(f"{NAME}@{table.snapshots()[0].snapshot_id}"), tmp_path / "then")
    assert [record["value"] for record in records_of(tmp_path / "then", "t")] == [{"n": 1, "price": 5, "kind": "old"}]


def test_values_of_all_types(tmp_path: Path, catalog: SqlCatalog) -> None:
    """And nulls of all types, in files that were written before a column was there."""
    day = dt.datetime(2013, 7, 1, 5, 30, 0, 7, tzinfo=dt.UTC)
    values = {
        "at": AT, "bool": True, "int": 2**31 - 1, "float": 0.5, "double": 1e300, "decimal": Decimal("1.25"),
        "date": day.date(), "time": day.time(), "timestamp": day.replace(tzinfo=None), "timestamptz": day,
        "string": "ü", "uuid": uuid.UUID(int=7).bytes, "fixed": b"abc", "binary": b"\0",
    }  # fmt: skip
    kinds = (
        LongType(), BooleanType(), IntegerType(), FloatType(), DoubleType(), DecimalType(9, 2), DateType(), TimeType(),
        TimestampType(), TimestamptzType(), StringType(), UUIDType(), FixedType(3), BinaryType(),
    )  # fmt: skip
    table = catalog.create_table("shop.orders", Schema(NestedField(1, "at", LongType())))
    table.append(pa.table({"at": [AT - 1]}))
    with table.update_schema() as update:
        for name, kind in zip(list(values)[1:], kinds[1:], strict=True):
            update.add_column(name, kind)
    table.append(pa.Table.from_pylist([values], schema=table.schema().as_arrow()))
    load(topic(), tmp_path / "w")
    before, after = (record["value"] for record in records_of(tmp_path / "w", "t"))
    assert set(before.values()) == {None}
    midnight_us = ((5 * 60 + 30) * 60 * 10**6) + 7
    del values["at"]
    assert after == {**values, "time": midnight_us}


def test_files_of_hive_have_no_ids_and_lack_what_they_are_partitioned_by(tmp_path: Path, catalog: SqlCatalog) -> None:
    schema = Schema(
        NestedField(1, "n", LongType()), NestedField(2, "at", LongType()), NestedField(3, "day", DateType())
    )
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
    table = catalog.create_table("shop.orders", schema, partition_spec=spec)
    days = pa.array([19_000, 19_000, 19_001], pa.int32()).cast(pa.date32())
    written = pa.table({"n": [1, 2, 3], "at": [AT, AT + 1, AT + 2], "day": days})
    table.append(written)
    with table.transaction() as change:
        change.set_properties({"schema.name-mapping.default": create_mapping_from_schema(schema).model_dump_json()})
    for file in data_files(table):
        path = file.file_path.removeprefix("file://")
        pq.write_table(pq.read_table(path).replace_schema_metadata().drop_columns(["day"]).cast(bare(path)), path)
    load(topic(), tmp_path / "w")
    found = [(record["value"]["n"], record["value"]["day"]) for record in records_of(tmp_path / "w", "t")]
    assert found == list(zip(written["n"].to_pylist(), written["day"].to_pylist(), strict=True))


def bare(path: str) -> pa.Schema:
    return pa.schema([(field.name, field.type) for field in pq.read_schema(path) if field.name != "day"])


def test_a_table_by_its_metadata(tmp_path: Path, catalog: SqlCatalog) -> None:
    """What a folder's newest version is, its metadata says only if it is numbered."""
    table = table_of(catalog, rows(0, 3))
    folder = tmp_path / "lake/tables/shop/orders"
    with pytest.raises(ConfigurationError, match="only a catalog can tell") as caught:
        load(topic(str(folder)), tmp_path / "w")
    first = table.metadata_location.removeprefix("file://")
    assert str(caught.value.next_step).endswith(f"iceberg:{first}")
    load(topic(f"iceberg:{first}"), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2]
    table.append(rows(3, 2))
    shutil.copy(first, folder / "metadata/v9.metadata.json")
    shutil.copy(table.metadata_location.removeprefix("file://"), folder / "metadata/v10.metadata.json")
    done = load(topic(str(folder)), tmp_path / "w")
    assert (done.records, numbers_in(tmp_path / "w")) == (2, [0, 1, 2, 3, 4])
    table.append(rows(5, 1))
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ConfigurationError, match="there is no Iceberg table"):
        load(topic(f"iceberg:{tmp_path}"), tmp_path / "w")


def test_what_is_no_table_is_told(tmp_path: Path, catalog: SqlCatalog) -> None:
    for source, what, step in (
        ("iceberg:lake.shop.none", "there is no such Iceberg table", "pyiceberg --catalog"),
        ("iceberg:lake.none.orders", "there is no such Iceberg table", "pyiceberg --catalog"),
        ("iceberg:shop.orders", "no Iceberg table of a catalog", "iceberg:CATALOG.NAMESPACE.TABLE"),
        ("iceberg:nowhere.shop.orders", "cannot be read: URI missing", ".pyiceberg.yaml"),
    ):
        with pytest.raises(ConfigurationError, match=what) as caught:
            load(topic(source), tmp_path / "w")
        assert step in str(caught.value.next_step)
    table = table_of(catalog)
    with pytest.raises(ConfigurationError, match="the Iceberg table has no rows"):
        load(topic(), tmp_path / "w")
    table.append(rows(0, 1))
    data = data_files(table)[0].file_path.removeprefix("file://")
    shutil.move(data, f"{data}.gone")
    with pytest.raises(InputError, match="cannot be read") as caught:
        load(topic(), tmp_path / "w")
    assert caught.value.place["file"] == data


def test_a_table_in_an_object_store(tmp_path: Path, s3_options: Mapping[str, str]) -> None:
    """By its metadata, with the options of all other sources; pyiceberg's own are not asked for."""
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    properties = {
        "s3.endpoint": s3_options["aws_endpoint_url"], "s3.region": s3_options["aws_region"],
        "s3.access-key-id": s3_options["aws_access_key_id"],
        "s3.secret-access-key": s3_options["aws_secret_access_key"],
    }  # fmt: skip
    writer = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=root, **properties)
    writer.create_namespace("shop")
    table = table_of(writer, rows(0, 3), rows(3, 1))
    delete_rows(table, {data_files(table)[0].file_path: [0]})
    left = sorted(table.refresh().scan().to_arrow()["n"].to_pylist())
    content = table.io.new_input(table.metadata_location).open().read()
    key = table.location().removeprefix(f"s3://{BUCKET}/")
    obstore.put(client(f"s3://{BUCKET}", s3_options), f"{key}/metadata/v1.metadata.json", content)
    topic_ = topic(table.location())
    spill = Storage(str(tmp_path / "spill"))
    load_here(begin(topic_, tmp_path / "w", options=s3_options), spill, 1 << 20, no_progress)
    assert numbers_in(tmp_path / "w") == left


def test_a_catalog_opens_its_files_itself(
    tmp_path: Path, s3_options: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the properties of the catalog, of which no more go to workers than open files."""
    folder = tmp_path / "lake"
    folder.mkdir()
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    for name, value in {
        "URI": f"sqlite:///{folder}/catalog.db", "WAREHOUSE": root, "TOKEN": "a secret",
        "S3__ENDPOINT": s3_options["aws_endpoint_url"], "S3__REGION": s3_options["aws_region"],
        "S3__ACCESS_KEY_ID": s3_options["aws_access_key_id"],
        "S3__SECRET_ACCESS_KEY": s3_options["aws_secret_access_key"],
    }.items():  # fmt: skip
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    writer = load_catalog("lake")
    writer.create_namespace("shop")
    table_of(writer, rows(0, 3))
    plan = begin(topic(), tmp_path / "w").plan
    assert plan is not None
    assert "a secret" not in pickle.dumps(plan).decode("latin-1")
    assert s3_options["aws_secret_access_key"] not in repr(plan)
    load(topic(), tmp_path / "w")
    assert numbers_in(tmp_path / "w") == [0, 1, 2]


def test_no_message_tells_what_a_catalog_is_configured_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "nothing://user:a-secret@nowhere")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "rest")  # its client quotes what it cannot open
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    with pytest.raises(HindstreamError, match="cannot be read: No connection adapters") as caught:
        load(topic(), tmp_path / "w")
    assert "a-secret" not in "".join(traceback.format_exception(caught.value))


WITHOUT = """
import sys
sys.modules["pyiceberg"] = None  # as if it were not installed
from pathlib import Path
from statelib.errors.kinds import ConfigurationError
from statelib.ingest.sources.find import find_files
try:
    find_files(["iceberg:lake.shop.orders"], {})
except ConfigurationError as error:
    print(error)
"""


def test_who_has_no_pyiceberg_is_told_where_it_is() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "pyiceberg is not installed" in done.stdout
    assert "pip install 'hindstream[lake]'" in done.stdout
