from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

# In a process of its own: to start a session is to become the parent of orphans.
HEAD = """
import json, os, sys
from dataclasses import asdict
from pathlib import Path
from benchmarks.warm_session import HINDSTREAM, warm_session
folder = Path(sys.argv[1])
busy = [HINDSTREAM, "describe", "busy.py:job"]
"""
MEASURE = f"""{HEAD}
with warm_session(os.environ) as session:
    print(session.pid)
    costs = [session.measure(busy, log=folder / "log", folder=folder) for _ in range(2)]
print(json.dumps([asdict(cost) for cost in costs]))
"""
FAIL = f"""{HEAD}
with warm_session(os.environ) as session:
    print(session.pid, flush=True)
    session.measure([HINDSTREAM, "describe", "none.py:job"], log=folder / "log", folder=folder)
"""
ELSEWHERE = f"""{HEAD}
from benchmarks.warm_session import WarmSession
with warm_session(os.environ) as session:
    print(session.pid, flush=True)
    unlike = WarmSession(session.pid, session.environment | {{"OMP_NUM_THREADS": "1"}})
    unlike.measure(busy, log=folder / "log", folder=folder)
"""
# The work is done in the fork, and holds memory there; nothing of it is in the client.
BUSY = """
import time
from benchmarks.works import job as work_job
held = bytearray(128 << 20)
for i in range(0, len(held), 4096): held[i] = 1
begun = time.process_time()
while time.process_time() < begun + 0.6: pass
job = work_job("W1")
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "busy.py").write_text(BUSY)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code, str(folder)], env=environment, capture_output=True, text=True, check=False
    )


def has_ended(pid: str) -> bool:
    for _ in range(20):
        if not Path("/proc", pid).exists():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.long
def test_what_a_command_adds_is_counted_and_the_start_of_the_session_is_not(tmp_path) -> None:
    done = run(MEASURE, tmp_path)
    assert done.returncode == 0, done.stderr
    pid, costs = done.stdout.splitlines()
    for cost in json.loads(costs):
        assert 0.6 < cost["cpu_seconds"] < 1.5
        assert cost["wall_seconds"] > 0.6
        assert cost["peak_memory_bytes"] > 200 << 20  # what it holds, and the session's imports
    assert has_ended(pid)


@pytest.mark.parametrize(
    ("code", "said"), [(FAIL, "returned non-zero exit status"), (ELSEWHERE, "has not run: ")], ids=["fails", "refused"]
)
def test_the_session_ends_where_a_command_fails_or_runs_elsewhere(code, said, tmp_path) -> None:
    done = run(code, tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
    assert has_ended(done.stdout.strip())
