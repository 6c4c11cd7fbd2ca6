"""What `docs/versions.md` says of two versions of the demo's job is what happens, command by command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.command import hindstream
from tests.conftest import ROOT
from tests.docs.typed import follow

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_its_commands_print_what_it_says(tmp_path: Path) -> None:
    """A change is compared, explained, promoted and taken back, and a mistake repaired."""
    settings = {"HINDSTREAM_WAREHOUSE": "demo-warehouse", "HINDSTREAM_ENGINE": "local"}
    (tmp_path / "hindstream").mkdir()
    (tmp_path / "hindstream" / "demo").symlink_to(ROOT / "hindstream" / "demo")
    made = hindstream("demo", cwd=tmp_path, HINDSTREAM_ENGINE="local")
    assert made.returncode == 0, made.stderr
    follow(ROOT / "docs" / "versions.md", tmp_path, settings)
