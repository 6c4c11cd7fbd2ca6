from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hindstream.iceberg.world import World
from tests.ingest.iceberg import catalog_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World.made(tmp_path, catalog_in(tmp_path / "lake", monkeypatch))
