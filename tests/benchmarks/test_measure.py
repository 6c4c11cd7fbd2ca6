from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: to measure is to become the parent of orphans.
MEASURE = """
import json, os, sys
from dataclasses import asdict
from pathlib import Path
from benchmarks.measure import measure
cost = measure([sys.executable, "-c", sys.argv[1]], environment=dict(os.environ), log=Path(sys.argv[2]))
print(json.dumps(asdict(cost)))
"""
BUSY = "import time\nwhile time.process_time() < 0.8: pass"
# Its child ignores its own child, as Spark's daemon does, and ends first.
NESTED = f"""
import os, signal, time
if os.fork() == 0:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if os.fork() == 0:
        held = bytearray(64 << 20)
        for i in range(0, len(held), 4096): held[i] = 1
        exec({BUSY!r})
        os._exit(0)
    time.sleep(0.2)
    os._exit(0)
os.wait()
"""


def run(code: str, log: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MEASURE, code, str(log)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def measured(code: str, folder: Path) -> dict[str, float]:
    done = run(code, folder / "log")
    assert done.returncode == 0, done.stderr
    cost: dict[str, float] = json.loads(done.stdout)
    return cost


BESIDE = (
    "import subprocess, sys; beside = subprocess.Popen([sys.executable, '-c', 'import time\\nwhile True: time.time()'])"
)


def test_children_that_were_there_before_do_not_count(tmp_path: Path) -> None:
    code = f"{BESIDE}\n{MEASURE}\nbeside.kill()"
    command = [sys.executable, "-c", code, "pass", str(tmp_path / "log")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout)["cpu_seconds"] < 0.5


# It was busy before; asked, it has children that end between two samples.
SERVER = """
import os, sys, time
while time.process_time() < 0.8: pass
print("ready", flush=True)
open(sys.argv[1]).read()
for _ in range(30):
    if os.fork() == 0:
        begun = time.process_time()
        while time.process_time() < begun + 0.02: pass
        os._exit(0)
    os.wait()
print("done", file=open(sys.argv[2], "w"))
time.sleep(60)
"""
SERVED = """
import json, os, subprocess, sys
from dataclasses import asdict
from pathlib import Path
from benchmarks.measure import measure
asked, answered, log = (str(Path(sys.argv[1], name)) for name in ("asked", "answered", "log"))
os.mkfifo(asked)
os.mkfifo(answered)
server = subprocess.Popen([sys.executable, "-c", sys.argv[2], asked, answered], stdout=subprocess.PIPE)
server.stdout.readline()
ask = ["bash", "-c", "echo > $0; cat $1", asked, answered]
cost = measure(ask, environment=dict(os.environ), log=Path(log), server=server.pid)
server.kill()
print(json.dumps(asdict(cost)))
"""


def test_what_a_server_takes_for_a_command_counts_to_the_last_and_nothing_before(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVED, str(tmp_path), SERVER]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert 0.5 < json.loads(done.stdout)["cpu_seconds"] < 0.85


@pytest.mark.parametrize("code", [BUSY, NESTED], ids=["child", "orphan"])
def test_cpu_time_of_any_descendant_is_counted(code, tmp_path) -> None:
    assert 0.7 < measured(code, tmp_path)["cpu_seconds"] < 3


def test_memory_of_any_descendant_is_counted(tmp_path) -> None:
    nested, busy = (measured(code, tmp_path)["peak_memory_bytes"] for code in (NESTED, BUSY))
    assert nested > busy + (50 << 20)


def test_what_it_says_is_kept_and_shown_where_it_fails(tmp_path) -> None:
    log = tmp_path / "log"
    measured("print('a warning')", tmp_path)
    assert log.read_text() == "a warning\n"
    done = run("import sys; print('of no use', flush=True); sys.exit('no such topic')", log)
    assert "returned non-zero exit status 1" in done.stderr
    assert done.stderr.endswith("of no use\nno such topic\n")
    assert not done.stdout
