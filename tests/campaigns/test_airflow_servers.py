"""Servers that are killed and started again."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from tests.campaigns.airflow_servers import Server, processes_of

if TYPE_CHECKING:
    from pathlib import Path

_SLEEPS = "import time; time.sleep(300)"
_STARTS_TWO = f"""
import subprocess, sys, time
for title in ("worker -- LocalExecutor: <idle>", "worker -- LocalExecutor: a task"):
    subprocess.Popen([sys.executable, "-c", {_SLEEPS!r}, title])
time.sleep(300)
"""


def test_what_waits_ends_with_the_next_start_and_what_has_a_task_goes_on(tmp_path: Path) -> None:
    server = Server("scheduler", [sys.executable, "-c", _STARTS_TWO], os.environ, tmp_path / "log")
    try:
        server.keep()
        assert server.process is not None
        first = server.process.pid
        while len(processes_of([first])) < 3:
            time.sleep(0.05)
        server.kill()
        assert len(processes_of([first])) == 2
        server.keep()
        while len(left := processes_of([first])) > 1:
            time.sleep(0.05)
        server.keep()
        assert processes_of([first]) == left != []
    finally:
        server.end()
    assert processes_of([first]) == []
