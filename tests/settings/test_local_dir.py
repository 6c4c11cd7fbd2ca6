"""Directories that are called otherwise on each host."""

from __future__ import annotations

from pathlib import Path

import pytest

from statelib.errors.kinds import ConfigurationError
from statelib.settings.local_dir import for_all_hosts, local_state_dir, on_this_host
from statelib.settings.settings import load_settings


def test_variables_are_those_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISK", "/mnt/disk1")
    monkeypatch.setenv("RACK", "r7")
    assert on_this_host("$DISK/state-${RACK}", setting="state_dir") == "/mnt/disk1/state-r7"
    assert local_state_dir("$DISK/state") == Path("/mnt/disk1/state")
    assert load_settings({"state_dir": "${DISK}/state"}, environ={}).local_state_dir == Path("/mnt/disk1/state")


def test_without_variables_it_is_the_drivers() -> None:
    assert for_all_hosts("scratch") == str(Path.cwd() / "scratch")
    assert for_all_hosts("/scratch") == "/scratch"
    assert for_all_hosts("$DISK/scratch") == "$DISK/scratch"


def test_a_variable_that_is_not_set_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISK", raising=False)
    with pytest.raises(ConfigurationError, match=r"names \$DISK, which is not set on") as error:
        local_state_dir("$DISK/state")
    assert "set DISK in the environment of the driver and of every Spark worker" in str(error.value)
