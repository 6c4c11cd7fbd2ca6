"""What `docs/versions.md` says of two versions of the demo's job is what happens, command by command."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.command import hindstream, run
from tests.conftest import ROOT
from tests.docs.typed import follow

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long
@pytest.mark.slow
def test_its_commands_print_what_it_says(tmp_path: Path) -> None:
    """A change is compared, explained, promoted and taken back, and a mistake repaired."""
    settings = {"HINDSTREAM_WAREHOUSE": "demo-warehouse", "HINDSTREAM_ENGINE": "local"}
    (tmp_path / "hindstream").mkdir()
    (tmp_path / "hindstream" / "demo").symlink_to(ROOT / "hindstream" / "demo")
    made = hindstream("demo", cwd=tmp_path, HINDSTREAM_ENGINE="local")
    assert made.returncode == 0, made.stderr
    page = ROOT / "docs" / "versions.md"
    (reads_both,) = re.findall(r"^```python\n(import duckdb\n.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)

    def python_reads() -> None:
        shown = "\nprint(len(before), len(after), after.to_spark(spark).count(), after.segments[0].topic)"
        done = run(
            sys.executable, "-W", "error::DeprecationWarning", "-c", reads_both + shown, cwd=tmp_path, **settings
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[-4:] == ["19448", "19446", "19446", "delays-by-hour"]

    follow(page, tmp_path, settings, situations={"Python has read both": python_reads})
