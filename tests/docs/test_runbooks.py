"""The runbooks' commands, run as they stand there, one page after the other; they print what the pages say.

Commands of ``hindstream`` run in this process, which has Spark already; all others in a shell.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.cli import main as cli
from statelib.job.user_code import is_user_file
from tests.command import besides_progress
from tests.docs.blocks import RUNBOOKS, Typed, parts
from tests.docs.curl import path_with_curl
from tests.docs.situations import bring_about

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_LIVE_APPLICATIONS = {"migrating-a-live-store", "switching-a-live-application"}  # typed in tests/kafka
PAGES = sorted(page for page in RUNBOOKS.glob("*.md") if page.stem not in _OF_LIVE_APPLICATIONS)
_FAILS = ("hindstream: ", "curl: ")
_LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def typed_in(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Exit code and what a command prints, on either stream."""
    if not command.startswith("hindstream "):
        shell = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        return shell.returncode, shell.stdout + shell.stderr
    for name in [name for name, module in sys.modules.items() if is_user_file(module)]:
        monkeypatch.delitem(sys.modules, name)  # a process of its own would read the file as it is now
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    printed, code = io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
    return code, "".join(f"{line}\n" for line in besides_progress(printed.getvalue()))


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_do_what_the_page_says(
    page: Path,
    spark: SparkSession,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path_with_curl(os.environ["PATH"], tmp_path_factory.mktemp("bin")))
    monkeypatch.setenv("COLUMNS", "160")
    for name in [name for name in os.environ if name.startswith("HINDSTREAM_")]:
        monkeypatch.delenv(name)
    text = page.read_text(encoding="utf-8").replace("\n   ", "\n")  # blocks inside of lists
    situation, has_run = None, False
    for part in parts(text):
        if isinstance(part, str):
            situation = part
            bring_about(part)
            continue
        if situation is None:  # of Airflow's, see tests/hindstream/airflow/test_scheduler.py
            continue
        code, printed = typed_in(part.command, monkeypatch)
        fails = any(word in part.printed for word in _FAILS)
        assert (code != 0) == fails, f"{part.command}\n{printed}"
        if part.printed:
            assert doctest.OutputChecker().check_output(part.printed, printed, _LIKE), f"{part.command}\n{printed}"
        has_run = True
    assert has_run


def test_every_runbook_is_in_the_list() -> None:
    listed = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if page.name != "README.md" and f"({page.name})" not in listed] == []


def test_the_parts_of_a_page() -> None:
    text = "<!-- situation: x -->\n```console\n$ a b\n...\n$ c\n```\n```\n$ no\n```\n"
    assert parts(text) == ["x", Typed("a b", "...\n"), Typed("c", "")]
