"""Every test of a store runs over a folder and in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["persistent", "in_memory"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """The folder of a persistent store; None: the test uses in-memory suppliers."""
    return tmp_path / "db" if request.param == "persistent" else None
