"""That operators are compiled is said where a run waits for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hindstream.spark.phases import replay_here
from hindstream.spark.session.compiling import COMPILING, mark_option, marked
from statelib.kernels import compiled
from statelib.kernels.compiled import Int64s, Kernel, i64
from statelib.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def run_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], object]:
    """Runs a kernel as a new process would; code is kept in a folder of the test's own."""
    from numba.core import config  # noqa: PLC0415 - half a second

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "code"))
    monkeypatch.setattr(compiled, "KERNELS", [])
    return lambda: Kernel(first_of, [i64(Int64s)], allocates=False)(np.array([7]))


def first_of(numbers: np.ndarray) -> int:  # type: ignore[type-arg]
    return numbers[0]  # type: ignore[no-any-return]


def test_the_process_that_workers_are_forked_from_says_it_by_a_file(
    run_kernel: Callable[[], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ((option, file),) = mark_option(tmp_path / "scratch").items()
    assert file.endswith(f"compiling-{os.getpid()}")
    for is_compiled in (True, False):
        monkeypatch.setenv(option.removeprefix("spark.executorEnv."), file)
        with marked():
            assert not Path(file).exists()
            assert run_kernel() == 7
            assert Path(file).exists() == is_compiled
        assert not Path(file).exists()
        assert load_settings(), "workers read settings, and the variable is none"


def test_whoever_is_not_told_of_a_file_makes_none(run_kernel: Callable[[], object], tmp_path: Path) -> None:
    with marked():
        assert run_kernel() == 7
    assert [path.name for path in tmp_path.iterdir()] == ["code"]


def test_a_run_in_this_process_says_it_beside_its_figures(
    run_kernel: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    labels: list[str] = []
    monkeypatch.setattr(replay_here.Progress, "label", lambda _, text: labels.append(text))
    for _ in range(2):
        with replay_here._shown("orders, stage 1", 5) as advance:
            run_kernel()
            advance(5)
    assert labels == [f"orders, stage 1, {COMPILING}", "orders, stage 1", "orders, stage 1"]
