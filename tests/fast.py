"""The tests that say most for their time: ``./dev test --fast``. None starts a process, so no Spark and no broker.

A plugin of pytest (``-p tests.fast``) that chooses them; there is no list to keep:

- tests with a mark in `LEFT_OUT` are left out; a file that has nothing else is not even imported;
- of what is marked ``thorough``, a test with its cases or a file with its tests, one in `CASES` is taken;
- a test that starts a process is skipped where it does, whatever its marks are;
- properties get the examples of the profile ``fast`` (`tests.conftest`, `tests.effort`).

The end of a run names the tests that took long all the same: these want a mark.
"""

from __future__ import annotations

import ast
import os
import sys
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import PurePath
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEFT_OUT = ("airflow", "long", "slow", "spark")
CASES = 10
HARMLESS = ("git",)
"""Programs that a test may start."""

LONG_SECONDS = 3.0
"""Of a processor: a busy machine makes no test long."""

_STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"}
_SECONDS = "processor seconds"

os.environ.setdefault("HYPOTHESIS_PROFILE", "fast")  # before tests/conftest.py is imported


def marks_of_file(source: str) -> set[str]:
    """What all tests of a file are marked with: ``pytestmark = pytest.mark.spark``, or a list of such."""
    marks: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]:
            marks.update(part.attr for part in ast.walk(node.value) if isinstance(part, ast.Attribute))
    return marks


class Fast:
    """The plugin's hooks."""

    def __init__(self) -> None:
        self._runs_a_test = False
        sys.addaudithook(self._audit)
        start = BaseProcess.start

        def refused(process: BaseProcess) -> None:
            self._refuse_process()
            start(process)

        BaseProcess.start = refused  # type: ignore[method-assign] # no event tells of a spawn

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _STARTS and not (arguments and PurePath(str(arguments[0])).name in HARMLESS):
            self._refuse_process()

    def _refuse_process(self) -> None:
        if self._runs_a_test:
            pytest.skip("starts a process")

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leaves out what would be imported for nothing."""
        if collection_path.suffix != ".py" or "tests" not in collection_path.parts:
            return None
        if not collection_path.name.startswith("test_"):
            return True  # not for its own sake: tests that want it import it
        return bool(marks_of_file(collection_path.read_text(encoding="utf-8")) & {*LEFT_OUT}) or None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Takes a few of the cases of thorough tests."""
        seen: Counter[str] = Counter()
        left = set()
        for item in items:
            for marked, _ in item.iter_markers_with_node("thorough"):
                name = marked.nodeid.partition("[")[0]
                seen[name] += 1
                if seen[name] % CASES != CASES // 2:  # so none of a few
                    left.add(item)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=[*left])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self._runs_a_test = True
        try:
            return (yield)
        finally:
            self._runs_a_test = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        began = time.process_time()
        try:
            return (yield)
        finally:
            item.user_properties.append((_SECONDS, time.process_time() - began))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Names what took long."""
        reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
        seconds = {report.nodeid: dict(report.user_properties).get(_SECONDS, 0.0) for report in reports}
        if long := {test: took for test, took in seconds.items() if took > LONG_SECONDS}:
            terminalreporter.section("too long for a fast run: mark it thorough or slow")
            for test, took in sorted(long.items(), key=lambda each: -each[1]):
                terminalreporter.write_line(f"{took:.1f} s of a processor: {test}")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the hooks, and leaves out marked tests."""
    config.option.markexpr = f"not ({' or '.join(LEFT_OUT)})"
    if config.option.reportchars == "a":  # that of pyproject.toml
        config.option.reportchars = "fE"  # not all that was skipped as it should be
    config.pluginmanager.register(Fast())
