"""The recorded calibration fits the operators that there are; what cannot be read says what to do."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.estimate import calibrate as room
from hindstream.estimate import typical
from hindstream.estimate.calibrate import _columns, _engine, _operators, _task_seconds, _Work
from hindstream.estimate.calibration import FILE, RECORDED, find_calibration, keep_calibration, read_calibration
from statelib import operators
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.settings.settings import load_settings
from tests.hindstream.estimate.costs_of_one import calibration
from tests.surface.topology import surface

if TYPE_CHECKING:
    from collections.abc import Iterator


def kinds() -> set[str]:
    """Those of the surface, and all that a specification's source names."""
    used = {str(node.spec.describe()["operator"]) for sub in surface().sub_topologies for node in sub.processors}
    return used | {kind for file in Path(*operators.__path__).rglob("*.py") for kind in kinds_in(file)}


def kinds_in(file: Path) -> Iterator[str]:
    """What a file has as ``"operator"`` in a description, as far as it is written out."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "operator":
                    yield from written_out(value)


def written_out(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.Constant(value=str() as kind):
            yield kind
        case ast.IfExp():
            yield from written_out(value.body)
            yield from written_out(value.orelse)


def test_every_kind_of_operator_has_been_measured() -> None:
    assert kinds() - set(read_calibration(RECORDED).operators) == set()


def test_recorded_figures_are_plausible() -> None:
    recorded = read_calibration(RECORDED)
    assert set(recorded.engines) == {"spark", "local"}
    assert all(0 < seconds < 1e-4 for seconds in recorded.operators.values())
    assert recorded.engines["local"].start_cpu_seconds < recorded.engines["spark"].start_cpu_seconds


def test_that_of_the_machine_counts_before_the_recorded_one_and_a_given_one_before_both(tmp_path) -> None:
    settings = load_settings({"state_dir": tmp_path}, environ={})
    assert find_calibration(settings)[1] == "recorded"
    own = calibration(call_seconds=1.0)
    keep_calibration(own, tmp_path / FILE)
    assert find_calibration(settings) == (own, str(tmp_path / FILE))
    other = tmp_path / "deep" / "other.json"
    keep_calibration(calibration(call_seconds=2.0), other)
    assert find_calibration(settings, other)[0].call_seconds == 2.0
    assert find_calibration(settings)[0] == own


def test_one_that_cannot_be_read_is_refused(tmp_path) -> None:
    file = tmp_path / FILE
    with pytest.raises(ConfigurationError, match="cannot be read: No such file.*hindstream estimate --calibrate"):
        read_calibration(file)
    keep_calibration(calibration(), file)
    file.write_bytes(file.read_bytes().replace(b'"cpus": 2', b'"cpus": 3'))
    with pytest.raises(CorruptedDataError, match="the calibration is damaged.*measure again"):
        read_calibration(file)
    newer = {**json.loads(calibration().encode()), "format_version": 99}
    del newer["checksum"]
    file.write_bytes(calibration().model_copy(update={"format_version": 99}).encode())
    with pytest.raises(ConfigurationError, match="install the newer Hindstream"):
        read_calibration(file)


def test_one_that_cannot_be_kept_is_told(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="the calibration cannot be written"):
        keep_calibration(calibration(), tmp_path / "file" / FILE)


@pytest.fixture
def work(tmp_path, monkeypatch) -> _Work:
    """With fewer records than a machine is measured with."""
    monkeypatch.setattr(typical, "RECORDS", 2_000)
    monkeypatch.setattr(room, "_CALLED", 500)
    return _Work(tmp_path, load_settings({"state_dir": tmp_path / "own"}, environ={}))


@pytest.mark.slow
def test_a_machine_is_measured_through_all_kinds(work) -> None:
    measured, call_seconds = _operators(work)
    assert kinds() - set(measured) == set()
    assert all(seconds > 0 for seconds in measured.values())
    assert call_seconds > 0


def test_columns_and_tasks_are_measured(work) -> None:
    for cost in _columns(work):
        assert cost.record_seconds > 0
        assert min(cost.number_seconds, cost.text_seconds) >= 0
    assert _task_seconds(work) > 0


@pytest.mark.slow
def test_a_start_is_measured_in_a_process_of_its_own(work, monkeypatch) -> None:
    monkeypatch.setattr(room, "_PROBES", 1)
    cost, probed = _engine(work, "local")
    assert cost.start_seconds > 0
    assert cost.start_cpu_seconds > 0
    assert cost.memory_bytes > 50 << 20
    assert probed.batch_bytes > 0


def test_a_process_that_fails_is_told(work, monkeypatch) -> None:
    monkeypatch.setattr(room, "_PROBES", 1)
    monkeypatch.setenv("HINDSTREAM_ENGINE", "none")
    monkeypatch.setenv("HINDSTREAM_CONFIG", "/nowhere.toml")
    with pytest.raises(ConfigurationError, match="a run to measure has failed: .*hindstream doctor"):
        _engine(work, "local")
