"""Tables of a REST catalog, and tables in an object store: the same as those of the other tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from statelib.commits import rollback
from tests.hindstream.iceberg.rest_catalog import rest_catalog
from tests.hindstream.iceberg.world import World
from tests.repair.histories import HOUR
from tests.storage.s3 import S3Server
from tests.storage.s3 import s3 as s3  # noqa: PLC0414

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.catalog import Catalog

pytestmark = pytest.mark.slow


def configured(monkeypatch: pytest.MonkeyPatch, **properties: str) -> Catalog:
    """The catalog ``lake``, by the environment, with the namespace ``shop``."""
    for name, value in properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = load_catalog("lake")
    catalog.create_namespace("shop")
    return catalog


def goes_through(world: World) -> None:
    """Publishes, goes back, goes on, promotes and goes back again: readers have what the sinks have each time."""
    world.publish()
    assert world.seen() == world.has()
    rollback(world.warehouse, "job", 1, now_ms=9)
    assert all(done.removed > 0 == done.added for done in world.publish())
    assert world.seen() == world.has()
    world.job.run(30 * HOUR)
    world.publish()
    world.promote()
    world.publish("new")
    assert world.seen() == world.has("new") != world.has("job")
    world.back()
    world.publish()
    assert world.seen() == world.has()


def test_a_rest_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    with rest_catalog(lake) as address:
        catalog = configured(monkeypatch, TYPE="rest", URI=address)
        goes_through(World.made(tmp_path, catalog))


@pytest.mark.long
def test_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> None:
    """The tables are in it; the job's warehouse is, too."""
    store = {
        "S3__ENDPOINT": s3.endpoint,
        "S3__REGION": "us-east-1",
        "S3__ACCESS_KEY_ID": s3.options["aws_access_key_id"],
        "S3__SECRET_ACCESS_KEY": s3.options["aws_secret_access_key"],
    }
    catalog = configured(
        monkeypatch, URI=f"sqlite:///{tmp_path}/catalog.db", WAREHOUSE="s3://warehouse/tables", **store
    )
    goes_through(World.made(tmp_path, catalog, "s3://warehouse/job", storage_options=s3.options))
