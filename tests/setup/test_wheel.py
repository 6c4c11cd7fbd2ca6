"""The wheel beside the packages of this environment: nothing is downloaded (``./dev campaign wheel`` does)."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

from tests.campaigns.wheel import YEAR, bare_environ, build_wheel, run_demo
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@dataclass(frozen=True)
class Installed:
    wheel: Path
    environment: Path

    def run(self, *command: str, cwd: Path) -> str:
        program, *arguments = command
        done = subprocess.run(
            [self.environment / "bin" / program, *arguments],
            cwd=cwd,
            env=bare_environ(cwd),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    wheel, environment = build_wheel(folder), folder / "venv"
    venv.create(environment)
    site_packages = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site_packages / "others.pth").write_text("\n".join(others))
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--quiet", wheel], check=True)
    return Installed(wheel, environment)


def test_it_holds_the_packages_and_their_data_and_nothing_else(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    tracked = subprocess.check_output(["git", "ls-files", "hindstream", "statelib"], cwd=ROOT)
    assert names == {*tracked.decode().split()}


def test_it_is_the_same_whenever_it_is_built(installed: Installed, tmp_path: Path) -> None:
    assert build_wheel(tmp_path).read_bytes() == installed.wheel.read_bytes()


def test_its_metadata_names_what_can_be_installed_with_it(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["Version"] == PROJECT["version"]
    assert {"airflow", "all", "demo", "kafka"} <= {*metadata.get_all("Provides-Extra", ())}


def test_its_command_says_its_version(installed: Installed, tmp_path: Path) -> None:
    assert installed.run("hindstream", "--version", cwd=tmp_path) == f"hindstream {PROJECT['version']}"


def test_its_packages_are_those_that_are_imported(installed: Installed, tmp_path: Path) -> None:
    code = "import hindstream, statelib; print(hindstream.__file__, statelib.__file__)"
    files = installed.run("python", "-c", code, cwd=tmp_path).split()
    assert [Path(file).is_relative_to(installed.environment) for file in files] == [True] * 2


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.airflow
@pytest.mark.spark
def test_its_demo_runs_with_the_java_of_the_packages(installed: Installed, tmp_path: Path) -> None:
    done = run_demo(installed.environment, tmp_path / "home")
    assert done.returncode == 0, done.stdout
    assert YEAR.search(done.stdout), done.stdout
    assert os.access(installed.environment / "share" / "hindstream" / "java-home" / "bin" / "java", os.X_OK)
