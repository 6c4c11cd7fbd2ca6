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

from hindstream.session import messages
from hindstream.session.imported import _changed
from hindstream.session.place import FIXED_AT_START
from tests.command import hindstream, run
from tests.effort import every_other
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
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as folder, pytest.MonkeyPatch.context() as patched:
        patched.delenv("PYTHONUNBUFFERED", raising=False)
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


@pytest.mark.long
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
        for number in (signal.SIGINT, signal.SIGHUP):  # who runs the tests may have ignored them
            signal.signal(number, signal.SIG_IGN if number == ignored else signal.SIG_DFL)

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


@pytest.mark.long
def test_the_next_session_need_not_wait_for_the_last_one(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as other:
        environ = {"XDG_RUNTIME_DIR": other}
        with started(environ) as first:
            process, _ = sleeping(folder, environ)
            hindstream("session", "stop", cwd=folder, **environ)
            with started(environ) as second:
                assert is_there(first["pid"])
                process.terminate()
                process.communicate()
                wait_until(lambda: not is_there(first["pid"]))
                assert status(environ)["pid"] == second["pid"]


@pytest.mark.long
def test_a_session_whose_folder_is_deleted_ends(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as other:
        environ = {"XDG_RUNTIME_DIR": other}
        with started(environ) as first:
            shutil.rmtree(Path(other) / "hindstream")
            assert hindstream("describe", "jobs.quiet:job", cwd=folder, **environ).returncode == 0
            with started(environ) as second:
                wait_until(lambda: not is_there(first["pid"]))
                assert status(environ)["pid"] == second["pid"]


def test_two_starts_at_once_start_one(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="hs-", dir="/tmp") as other:
        environ = {"XDG_RUNTIME_DIR": other}
        start = f"{sys.executable} -m hindstream session start --output json"
        done = run("bash", "-c", f"{start} & {start} & wait", cwd=folder, **environ)
        try:
            assert len({json.loads(line)["pid"] for line in done.stdout.splitlines()}) == 1, done.stderr
            assert done.stderr == ""
        finally:
            hindstream("session", "stop", cwd=folder, **environ)


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
    ("flags", "environ"),
    [(["-X", "dev"], {}), (["-u"], {}), ([], {"OMP_NUM_THREADS": "7"}), ([], {"TZ": "Asia/Tokyo"})],
    ids=str,
)
def test_what_would_not_be_the_same_runs_by_itself(
    flags: list[str], environ: dict[str, str], folder: Path, session: dict[str, str]
) -> None:
    before = status(session)["commands"]
    command = [sys.executable, *flags, "-m", "hindstream", "describe", "jobs.quiet:job"]
    done = run(*command, cwd=folder, **environ, **session)
    assert done.returncode == 0, done.stderr
    assert status(session)["commands"] == before


def shell(command: str, folder: Path, session: dict[str, str]) -> bool:
    """Whether a command of a shell does what it does without a session, in which it was run if this says so.

    ``{hindstream}`` stands for a command that describes a job.
    """
    before = status(session)["commands"]
    script = command.format(hindstream=f"{sys.executable} -m hindstream describe jobs.quiet:job")
    alone, inside = (run("bash", "-c", script, cwd=folder, **of) for of in ({}, session))
    assert (inside.returncode, inside.stdout) == (alone.returncode, alone.stdout)
    assert inside.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]  # frames above are others
    return status(session)["commands"] > before


@pytest.mark.parametrize(
    ("command", "inside"),
    every_other(
        [
            ("{hindstream} <&-", False),
            ("{hindstream} >&-", False),
            ("{hindstream} 2>&-", False),
            ("{hindstream} <&- >&- 2>&-", False),
            ("nice -n 3 {hindstream}", False),
            ("mkdir gone; cd gone; rmdir ../gone; {hindstream}", False),
            ("head -c 250000 /dev/zero | tr '\\0' a > large; A=$(head -c 120000 large) B=$A {hindstream}", False),
            ("{hindstream} | head -1", True),
            ("{hindstream} > /dev/full", True),
            ("{hindstream} $'\\xff'; LC_ALL=C {hindstream} $'\\xff'", True),
            ("exec 3>&1; {hindstream} 2>&1 >&3 | tail -1", True),
            ("timeout -s INT 20 {hindstream}", True),
            ("setsid -w {hindstream}", True),
        ]
    ),
)
def test_shells_start_commands_as_ever(command: str, inside: bool, folder: Path, session: dict[str, str]) -> None:
    assert shell(command, folder, session) == inside


@pytest.mark.long
def test_many_commands_run_at_once(folder: Path, session: dict[str, str]) -> None:
    assert shell("for i in {{1..8}}; do {hindstream} > $i & done; wait; cat {{1..8}}", folder, session)


@pytest.mark.parametrize(
    ("name", "inside"),
    [("pandas.py", False), ("yaml/__init__.py", False), ("yaml/data.txt", True), ("others.py", True)],
)
def test_modules_of_the_folder_come_first(name: str, inside: bool, folder: Path, session: dict[str, str]) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("")
    before = status(session)["commands"]
    hindstream("describe", "jobs.quiet:job", cwd=folder, **session)
    assert (status(session)["commands"] > before) == inside


def test_an_edited_job_is_the_edited_one(folder: Path, session: dict[str, str]) -> None:
    edit = 'cp jobs/quiet.py kept; sed -i \'s/"out"/"elsewhere"/\' jobs/quiet.py'
    assert shell(f"{{hindstream}}; {edit}; {{hindstream}}; cp kept jobs/quiet.py", folder, session)


@pytest.mark.parametrize("said", [b"nonsense", b"[]", b"{}", b'{"do": "run", "traits": {}}', b"\xff"])
def test_a_session_outlives_nonsense(said: bytes, runtime: Path, session: dict[str, str]) -> None:
    connection = messages.connect(str(next(runtime.rglob("*.sock"))))
    assert connection is not None
    with connection:
        connection.send(said)
        connection.recv(1 << 16)
    assert status(session)["running"]


@pytest.mark.parametrize("place", ["/" + "long" * 100, "/dev/null"])
def test_a_folder_that_cannot_be_is_told_by_start_alone(place: str, folder: Path) -> None:
    assert hindstream("describe", "jobs.quiet:job", cwd=folder, XDG_RUNTIME_DIR=place).returncode == 0
    done = hindstream("session", "start", cwd=folder, XDG_RUNTIME_DIR=place)
    assert (done.returncode, done.stderr.count("\n")) == (78, 1)
    assert "the folder of the session cannot be used" in done.stderr


_READ_AT_IMPORT = """
import os, json
names = set()
class Told(os._Environ):
    def __getitem__(self, name):
        names.add(name)
        return super().__getitem__(name)
    def __contains__(self, name):
        names.add(name)
        return super().__contains__(name)
os.environ.__class__ = Told
from hindstream.session import server
before = {**os.environ}
names.clear()
server.preload()
print(json.dumps([sorted(names), before == {**os.environ}]))
"""

_READ_FOR_NOTHING = {
    *("COLUMNS", "LINES"),  # the width of a table that numba keeps of its types
    *("HOME", "_PYTHON_PROJECT_BASE", "_PYTHON_SYSCONFIGDATA_NAME"),  # the paths of the interpreter
    *("SOURCE_DATE_EPOCH", "VS_PROFILER"),  # f2py's files and Windows
    "XDG_CACHE_HOME",  # where compiled templates are: a session has all of them in memory
}


def test_variables_that_imports_read_are_fixed() -> None:
    given = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", _READ_AT_IMPORT], env=given, cwd=Path(__file__).parents[3],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    names, same = json.loads(done.stdout)
    assert same
    free = {name for name in names if not name.startswith(FIXED_AT_START)}
    assert free - _READ_FOR_NOTHING - {*given, "LC_CTYPE"} == set()


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


_CHANGED = "told = iter([(1, 1), (2, 2)]); server.state_of_code = lambda: next(told)"
_BEING_REPLACED = "told = iter([(1, 1)]); server.state_of_code = lambda: next(told, None) or open('/nowhere')"
_NO_PROCESS = """
def fork():
    server.signal.raise_signal(server.signal.SIGTERM)  # or the session would not end
    raise BlockingIOError
server.os.fork = fork
"""


@pytest.mark.parametrize("what", [_CHANGED, _BEING_REPLACED, _NO_PROCESS], ids=["changed", "replaced", "no-process"])
def test_a_session_that_cannot_do_it_refuses_and_ends(what: str, folder: Path) -> None:
    begin = "import sys; sys.argv[1:] = ['60']; from hindstream.session import server; server.preload = lambda: None"
    code = f"{begin}\n{what}\nserver.main()"
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
