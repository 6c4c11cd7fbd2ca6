from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.ingest.iceberg import catalog_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCatalog:
    return catalog_in(tmp_path / "lake", monkeypatch)
