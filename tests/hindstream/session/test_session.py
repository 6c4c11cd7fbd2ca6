"""Commands in a session do what they do in a process of their own, for every way that a process can end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.session.server import _changed
from tests.command import hindstream, run
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0

JOB = """
import os, random, sys, time, uuid
import numpy as np
from pathlib import Path
from hindstream import Job, StreamsBuilder

TOLD = os.environ.get("TOLD")

def job() -> Job:
    if TOLD == "all":
        print(TOLD, input(), os.getcwd(), sys.argv[1:], sys.path[:2], oct(os.umask(0o22)), os.isatty(0), flush=True)
    if TOLD == "random":
        print(random.random(), np.random.rand(), uuid.uuid4())
    if TOLD == "exit":
        sys.exit(3)
    if TOLD == "fail":
        raise RuntimeError("of the user's")
    if TOLD == "sleep":
        Path("pid").write_text(str(os.getpid()))
        time.sleep(600)
    builder = StreamsBuilder("quiet")
    builder.stream("events").to("out")
    return Job("quiet", builder.build())
"""


@pytest.fixture(scope="module")
def runtime() -> Iterator[Path]:
    """A runtime folder; the path of a socket cannot be long."""
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def session(runtime: Path) -> Iterator[dict[str, str]]:
    """The variables of commands that find a session."""
    environ = {"XDG_RUNTIME_DIR": str(runtime)}
    with started(environ):
        yield environ


@contextmanager
def started(environ: dict[str, str], *arguments: str) -> Iterator[dict[str, Any]]:
    done = hindstream("session", "start", "--output", "json", *arguments, cwd=Path("/"), **environ)
    assert done.returncode == 0, done.stderr
    try:
        yield json.loads(done.stdout)
    finally:
        hindstream("session", "stop", cwd=Path("/"), **environ)


def status(environ: dict[str, str]) -> dict[str, Any]:
    done = hindstream("session", "status", "--output", "json", cwd=Path("/"), **environ)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__init__.py").touch()
    (tmp_path / "jobs" / "quiet.py").write_text(JOB)
    return tmp_path


def both(arguments: list[str], cwd: Path, session: dict[str, str], **environ: str) -> list[tuple[int, str, str]]:
    """What a command says and ends with, in its own process and in the session."""
    before = status(session)["commands"]
    done = [hindstream(*arguments, cwd=cwd, **environ, **of) for of in ({}, session)]
    assert status(session)["commands"] == before + 1
    return [(one.returncode, one.stdout, one.stderr) for one in done]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["run", "--help"], 0),
        (["no-such-command"], 2),
        (["status", "nothing", "--warehouse", "none"], 78),
        (["describe", "jobs/quiet.py:job"], 0),
        (["describe", "jobs.quiet:job", "--output", "json"], 0),
    ],
)
def test_commands_do_the_same(arguments: list[str], code: int, folder: Path, session: dict[str, str]) -> None:
    alone, inside = both(arguments, folder, session)
    assert inside == alone
    assert inside[0] == code


@pytest.mark.parametrize(("told", "code"), [("exit", 78), ("fail", 78)])
def test_users_code_ends_a_command_as_ever(told: str, code: int, folder: Path, session: dict[str, str]) -> None:
    alone, inside = both(["describe", "jobs.quiet:job"], folder, session, TOLD=told)
    assert (inside[0], inside[1]) == (alone[0], alone[1])
    assert inside[2].splitlines()[-1:] == alone[2].splitlines()[-1:]  # frames above are others
    assert inside[0] == code


@pytest.mark.parametrize("program", ["module", "script"])
def test_users_code_sees_the_commands_process(program: str, folder: Path, session: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hindstream"]
    if program == "script":
        command = [str(Path(sys.executable).with_name("hindstream"))]
    said = []
    for of in ({}, session):
        environ = {name: value for name, value in os.environ.items() if not name.startswith("HINDSTREAM_")}
        environ |= {"TOLD": "all", **of}
        done = subprocess.run(
            [*command, "describe", "jobs.quiet:job"],
            cwd=folder, env=environ, input="from outside\n", capture_output=True, text=True, check=True, umask=0o27,
        )  # fmt: skip
        said.append(done.stdout)
    assert said[0] == said[1]
    assert "from outside" in said[0]
    assert "0o27" in said[0]


def test_no_two_commands_have_the_same_random_numbers(folder: Path, session: dict[str, str]) -> None:
    done = [
        hindstream("describe", "jobs.quiet:job", cwd=folder, TOLD="random", **session).stdout.splitlines()[0].split()
        for _ in range(2)
    ]
    assert all(first != second for first, second in zip(*done, strict=True))


def test_a_run_writes_the_same(tmp_path: Path, session: dict[str, str]) -> None:
    written = []
    for of in ({}, session):
        settings = make_settings(tmp_path / "same")
        archive_orders(settings, orders())
        given = ["--warehouse", settings.warehouse, "--set", f"state_dir={settings.state_dir}"]
        for until in (f"{DAY_MS}", None):
            ends = [] if until is None else ["--until", "1970-01-02T00:00Z"]
            done = hindstream("run", f"{JOB_FILE}:job", "--engine", "local", *given, *ends, cwd=tmp_path, **of)
            assert done.returncode == 0, done.stderr
        topics = Path(settings.warehouse) / "topics" / "orders-by-country"
        written.append(sorted(path.read_bytes() for path in topics.rglob("*.parquet")))  # names are of attempts
        shutil.rmtree(tmp_path / "same")
    assert written[0] == written[1]
    assert written[0]


def sleeping(folder: Path, environ: dict[str, str], ignored: int | None = None) -> tuple[subprocess.Popen[str], int]:
    """A command whose job sleeps, and the process that it sleeps in; ``ignored``: a signal, as by ``nohup``."""

    def prepare() -> None:
        if ignored is not None:
            signal.signal(ignored, signal.SIG_IGN)

    clean = {name: value for name, value in os.environ.items() if not name.startswith("HINDSTREAM_")}
    command = [sys.executable, "-m", "hindstream", "describe", "jobs.quiet:job"]
    environment = {**clean, "TOLD": "sleep", **environ}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,  # noqa: PLW1509
    )
    pid = folder / "pid"
    wait_until(lambda: pid.exists() and pid.read_text() != "")
    return process, int(pid.read_text())


def wait_until(holds: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_command_as_ever(number: signal.Signals, folder: Path, session: dict[str, str]) -> None:
    ends = []
    for of in ({}, session):
        process, pid = sleeping(folder, of)
        assert (pid == process.pid) == (not of)
        process.send_signal(number)
        said = process.communicate()[1]
        ends.append((process.returncode, said))
        assert not is_there(pid)
        (folder / "pid").unlink()
    assert ends[0] == ends[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_is_ignored_stays_so(number: signal.Signals, folder: Path, session: dict[str, str]) -> None:
    process, pid = sleeping(folder, session, ignored=number)
    process.send_signal(number)
    os.kill(pid, number)
    time.sleep(0.2)
    assert is_there(pid)
    process.terminate()
    process.communicate()
    assert process.returncode == -signal.SIGTERM


def test_a_command_that_is_killed_leaves_nothing_behind(folder: Path, session: dict[str, str]) -> None:
    process, pid = sleeping(folder, session)
    process.kill()
    process.communicate()
    wait_until(lambda: not is_there(pid))


def test_a_command_that_is_stopped_goes_on_later(folder: Path, session: dict[str, str]) -> None:
    process, pid = sleeping(folder, session)

    def state(of: int) -> str:
        return Path(f"/proc/{of}/stat").read_text().rpartition(")")[2].split()[0]

    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: state(pid) == state(process.pid) == "T")
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: "T" not in {state(pid), state(process.pid)})
    process.terminate()
    process.communicate()
    assert process.returncode == -signal.SIGTERM


def test_a_session_that_is_killed_takes_its_commands_along(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as other:
        environ = {"XDG_RUNTIME_DIR": other}
        with started(environ) as found:
            process, pid = sleeping(folder, environ)
            os.kill(found["pid"], signal.SIGKILL)
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            wait_until(lambda: not is_there(pid))
            assert hindstream("describe", "jobs.quiet:job", cwd=folder, **environ).returncode == 0
            assert status(environ) == {"running": False}
        with started(environ) as again:
            assert again["running"]


def test_a_stopped_session_lets_commands_end(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as other:
        environ = {"XDG_RUNTIME_DIR": other}
        with started(environ) as found:
            process, pid = sleeping(folder, environ)
            hindstream("session", "stop", cwd=folder, **environ)
            assert is_there(pid)
            process.terminate()
            process.communicate()
            wait_until(lambda: not is_there(found["pid"]))


@pytest.mark.parametrize(
    ("flags", "environ"), [(["-X", "dev"], {}), ([], {"OMP_NUM_THREADS": "7"}), ([], {"TZ": "Asia/Tokyo"})], ids=str
)
def test_what_would_not_be_the_same_runs_by_itself(
    flags: list[str], environ: dict[str, str], folder: Path, session: dict[str, str]
) -> None:
    before = status(session)["commands"]
    command = [sys.executable, *flags, "-m", "hindstream", "describe", "jobs.quiet:job"]
    done = run(*command, cwd=folder, **environ, **session)
    assert done.returncode == 0, done.stderr
    assert status(session)["commands"] == before


def test_there_is_one_session(session: dict[str, str]) -> None:
    pid = status(session)["pid"]
    done = hindstream("session", "start", "--output", "json", cwd=Path("/"), **session)
    assert json.loads(done.stdout)["pid"] == pid
    done = run(sys.executable, "-m", "hindstream.session.server", "60", cwd=Path("/"), **session)
    assert (done.returncode, done.stderr) == (1, "a session runs already\n")


def test_an_idle_session_ends() -> None:
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as other:
        environ = {"XDG_RUNTIME_DIR": other}
        with started(environ, "--idle-minutes", "0.05") as found:
            wait_until(lambda: not is_there(found["pid"]))
            assert not [*Path(other).rglob("*.sock")]


def test_a_folder_that_others_can_open_has_no_session(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as other:
        (Path(other) / "hindstream").mkdir()
        (Path(other) / "hindstream").chmod(0o750)
        done = hindstream("session", "start", cwd=folder, XDG_RUNTIME_DIR=other)
        assert done.returncode == 78
        assert "others can open the folder" in done.stderr


def test_a_session_of_older_code_refuses_and_ends(folder: Path) -> None:
    code = (
        "import sys; sys.argv[1:] = ['60']; from hindstream.session import server;"
        "told = iter([(1, 1), (2, 2)]); server.state_of_code = lambda: next(told); server.preload = lambda: None;"
        "server.main()"
    )
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as other:
        environ = {"XDG_RUNTIME_DIR": other}
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HINDSTREAM_")}
        with subprocess.Popen(
            [sys.executable, "-c", code], env={**clean, **environ}, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            done = hindstream("describe", "jobs.quiet:job", cwd=folder, **environ)
            assert done.returncode == 0
            assert process.wait(PATIENCE_S) == 0


def test_a_changed_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.py"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, ns=(1, 1))
    assert sorted(_changed(str(tmp_path))) == [1, 1]
    os.utime(tmp_path / "inner" / "b.py", ns=(1, 2))
    assert sorted(_changed(str(tmp_path))) == [1, 2]
