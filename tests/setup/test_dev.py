"""./dev: what it tells people, which Java it takes, and what it keeps out of the environment."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUNDLED = str(ROOT / ".venv" / "share" / "hindstream" / "java-home")
SYSTEM_PATH = "/usr/bin:/bin"

needs_environment = pytest.mark.skipif(not (ROOT / ".venv" / ".complete").exists(), reason="not set up by ./dev")


def dev(*arguments: str, script: Path = ROOT / "dev", **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs ./dev in a bare environment: no Java in sight unless the test puts one there."""
    return subprocess.run(
        [script, *arguments],
        env={"HOME": os.environ["HOME"], "PATH": SYSTEM_PATH} | environment,
        text=True,
        capture_output=True,
        check=False,
    )


def fake_java(folder: Path, version: str) -> str:
    """A java that knows nothing but its version; its home is ``folder``."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\nprintf '    java.home = {folder}\\n    java.specification.version = {version}\\n' >&2\n"
    )
    program.chmod(0o755)
    return str(folder)


def no_java(folder: Path) -> str:
    """A PATH like the system's, without its java."""
    folder.mkdir()
    for program in ("bash", "cat", "dirname", "printenv", "sha256sum"):
        (folder / program).symlink_to(f"/usr/bin/{program}")
    return str(folder)


@needs_environment
def test_help_lists_every_command() -> None:
    script = (ROOT / "dev").read_text()
    commands = {
        line.strip().rstrip(")") for line in script.splitlines() if line.startswith("  ") and line.endswith(")")
    }
    output = dev("help").stdout
    for command in ("demo", "test", "lint", "format", "run", "campaign", "bench", "lock"):
        assert command in commands
        assert f"\n  {command} " in output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["frobnicate"], "there is no command 'frobnicate'"), (["run"], "run what?")],
)
def test_a_wrong_call_is_told_what_is_wrong(arguments: list[str], says: str) -> None:
    result = dev(*arguments)
    assert result.returncode == 1
    assert says in result.stderr


@needs_environment
def test_a_python_that_is_too_old_is_named_and_the_way_out_as_well(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.10.4\nexit 1\n')
    python.chmod(0o755)
    result = dev("setup", HINDSTREAM_PYTHON=str(python))
    assert result.returncode == 1
    assert f"Python 3.11 to 3.14 is needed; {python} is" in result.stderr
    assert "apt-get install python3 python3-venv" in result.stderr
    assert (ROOT / ".venv" / ".complete").exists()


@needs_environment
def test_arguments_and_exit_status_pass_through() -> None:
    result = dev("run", "python", "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "a b", "*", "")
    assert result.stdout == "['a b', '*', '']\n"
    assert result.returncode == 7


@needs_environment
@pytest.mark.parametrize("version", ["17", "21"])
def test_a_java_that_spark_supports_is_taken_from_java_home(version: str, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", version)
    assert dev("run", "printenv", "JAVA_HOME", JAVA_HOME=home).stdout.strip() == home


@needs_environment
def test_java_home_comes_before_path(tmp_path: Path) -> None:
    first, second = fake_java(tmp_path / "first", "17"), fake_java(tmp_path / "second", "21")
    path = f"{second}/bin:{SYSTEM_PATH}"
    assert dev("run", "printenv", "JAVA_HOME", JAVA_HOME=first, PATH=path).stdout.strip() == first
    assert dev("run", "printenv", "JAVA_HOME", PATH=path).stdout.strip() == second


@needs_environment
@pytest.mark.parametrize("version", ["1.8", "11", "25"])
def test_any_other_java_is_passed_over(version: str, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", version)
    path = no_java(tmp_path / "bin")
    assert dev("run", "printenv", "JAVA_HOME", JAVA_HOME=home, PATH=f"{home}/bin:{path}").stdout.strip() == BUNDLED


@needs_environment
def test_a_java_home_without_java_is_passed_over(tmp_path: Path) -> None:
    path = no_java(tmp_path / "bin")
    assert dev("run", "printenv", "JAVA_HOME", JAVA_HOME=str(tmp_path), PATH=path).stdout.strip() == BUNDLED


@needs_environment
def test_the_bundled_java_can_be_asked_for(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "17")
    result = dev("run", "java", "-version", JAVA_HOME=home, HINDSTREAM_JAVA="bundled")
    assert 'version "21.' in result.stderr


@needs_environment
def test_another_installation_does_not_leak_in() -> None:
    foreign = dict.fromkeys(
        ("HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYTHONPATH", "SPARK_CONF_DIR", "SPARK_HOME"), "/x"
    )
    seen = dev("run", "printenv", **foreign, AIRFLOW_HOME="/x", PYSPARK_PYTHON="/x").stdout
    assert "=/x" not in seen


@needs_environment
def test_an_environment_that_is_there_costs_next_to_no_time() -> None:
    start = time.perf_counter()
    dev("run", "true")
    assert time.perf_counter() - start < 2  # some hundredths of a second; the machine may be busy


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A checkout whose environment holds the packages of the demo, by its stamp; its pip has no network."""
    made_from = hashlib.sha256()
    for name in ("dev", "pyproject.toml", "requirements-demo.lock", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
        made_from.update((ROOT / name).read_bytes())
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, text in {
        "python": '[ "$1" = -V ] && echo Python 3.11.2 && exit\necho "no network"\nexit 1',
        "hindstream": 'echo "hindstream $*"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    stamp = f"{made_from.hexdigest()}  -\nPython 3.11.2\n{tmp_path}\ndemo\n"
    (tmp_path / ".venv" / ".complete").write_text(stamp)
    return tmp_path


def test_the_demo_and_the_command_line_do_with_the_packages_of_the_demo(copied: Path) -> None:
    for arguments, runs in ((["demo", "--fresh"], "demo --fresh"), (["run", "hindstream", "status"], "status")):
        result = dev(*arguments, script=copied / "dev")
        assert (result.stdout, result.stderr, result.returncode) == (f"hindstream {runs}\n", "", 0)


def test_all_others_add_the_rest_and_a_failure_leaves_what_is_there(copied: Path) -> None:
    result = dev("run", "true", script=copied / "dev")
    assert result.returncode == 1
    assert 'adding to .venv what "demo" does without' in result.stderr
    assert "no network" in result.stderr
    assert dev("demo", script=copied / "dev").returncode == 0


def test_an_environment_of_other_packages_is_brought_up_to_date(copied: Path) -> None:
    with (copied / "requirements-demo.lock").open("a") as lock:
        lock.write("# another\n")
    assert "bringing .venv up to date" in dev("demo", script=copied / "dev").stderr


def test_an_environment_that_has_all_packages_has_those_of_the_demo(copied: Path) -> None:
    stamp = copied / ".venv" / ".complete"
    stamp.write_text(stamp.read_text().replace("\ndemo\n", "\nall\n"))
    assert dev("demo", script=copied / "dev").returncode == dev("run", "true", script=copied / "dev").returncode == 0


def test_a_step_is_never_silent_for_longer_than_ten_seconds() -> None:
    script = (ROOT / "dev").read_text()
    functions = script[script.index("say() {") : script.index("die() {")]
    functions += script[script.index("show_progress() {") : script.index("pip() {")]
    work = "{ echo '  Downloading spark.whl (400 MB)'; sleep 11; echo 'Nothing of interest'; }"
    bash = ["bash", "-c", f"set -euo pipefail\n{functions}\n{work} | show_progress"]
    done = subprocess.run(bash, text=True, capture_output=True, check=True)
    assert done.stdout == ""
    assert done.stderr in {f"dev:   Downloading spark.whl (400 MB) ({n} s)\n" for n in (9, 10)}
