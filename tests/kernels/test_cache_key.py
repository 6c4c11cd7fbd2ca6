"""Code kept on disk is used only by kernels that are made of the very same, whatever file the parts are in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from statelib.kernels.cache_key import cache_key
from statelib.kernels.compile import compile_all
from statelib.kernels.compiled import KERNELS

ROOT = Path(__file__).parents[2]
HELPERS = """
    from statelib.kernels.compiled import helper

    STEP = 1

    @helper
    def deepest(number):
        return number + STEP

    @helper
    def counted(number):
        return deepest(number)
"""
KERNEL = """
    from statelib.kernels.compiled import compiled, i64
    from helpers import counted

    @compiled(i64(i64))
    def kernel(number):
        return counted(number) * 10
"""
RUN = "import kernels; print(kernels.kernel(4), sum(kernels.kernel.dispatcher.stats.cache_hits.values()))"


def run(folder: Path, helpers: str = HELPERS, kernel: str = KERNEL) -> tuple[int, int]:
    """What the kernel gives, and how often its code was found on disk; the kernel's file is as old as ever."""
    for name, source in (("helpers", helpers), ("kernels", kernel)):
        (folder / f"{name}.py").write_text(dedent(source))
        os.utime(folder / f"{name}.py", (1_000_000_000, 1_000_000_000))
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": f"{folder}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    result, hits = done.stdout.split()
    return int(result), int(hits)


@pytest.mark.parametrize(
    ("changed", "result"),
    [
        (("helpers", "number + STEP", "number - STEP"), 30),
        (("helpers", "STEP = 1", "STEP = 2"), 60),
        (("kernel", "* 10", "* 20"), 100),
    ],
    ids=["a helper's helper", "a constant", "the kernel, in a file of the same size and time"],
)
def test_what_a_kernel_is_made_of_decides_whether_its_code_is_kept(
    tmp_path: Path, changed: tuple[str, str, str], result: int
) -> None:
    assert run(tmp_path) == (50, 0)
    assert run(tmp_path) == (50, 1)
    where, old, new = changed
    sources: dict[str, Any] = {"helpers": HELPERS, "kernel": KERNEL}
    sources[where] = sources[where].replace(old, new)
    assert run(tmp_path, **sources) == (result, 0)
    assert run(tmp_path) == (50, 1), "the code of before is there still"


def test_each_kernel_has_a_key_of_its_own() -> None:
    compile_all()
    kernels = [kernel for kernel in KERNELS if kernel.signatures is not None]
    assert len({cache_key(kernel) for kernel in kernels}) == len(kernels) > 100


def test_a_value_that_a_text_does_not_tell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from statelib.columns import hashing  # noqa: PLC0415 - whose kernels are looked at, not run

    kernel = next(one for one in KERNELS if one.function.__module__ == hashing.__name__)
    name = next(name for name in kernel.function.__code__.co_names if name in kernel.function.__globals__)
    cache_key.__globals__["_made_of"].cache_clear()
    monkeypatch.setitem(kernel.function.__globals__, name, [1, 2])
    with pytest.raises(TypeError, match=f"{name} is a list"):
        cache_key(kernel)
    monkeypatch.undo()
    cache_key.__globals__["_made_of"].cache_clear()
