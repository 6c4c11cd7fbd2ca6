"""The demo's topics and its answer, made once for all tests here."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from hindstream.demo.archives import prepare_topics
from hindstream.demo.run import MONTH_ENDS_MS
from statelib.storage import Storage
from tests.hindstream.demo.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def topics(tmp_path_factory) -> Path:
    """A warehouse with the two topics and nothing else; to be copied."""
    folder = tmp_path_factory.mktemp("demo") / "topics"
    prepare_topics(Storage(str(folder)), announce=lambda _: None)
    return folder


@pytest.fixture
def new_warehouse(topics, tmp_path) -> Callable[[str], Storage]:
    """Makes warehouses of their own with the topics."""

    def make(name: str) -> Storage:
        return Storage(str(shutil.copytree(topics, tmp_path / name)))

    return make


@pytest.fixture(scope="session")
def by_month(topics, tmp_path_factory) -> Storage:
    """The whole year in twelve slices."""
    folder = tmp_path_factory.mktemp("by-month")
    warehouse = Storage(str(shutil.copytree(topics, folder / "warehouse")))
    for end in MONTH_ENDS_MS:
        replay(warehouse, end, folder / "state")
    return warehouse
