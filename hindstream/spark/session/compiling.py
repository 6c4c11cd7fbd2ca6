"""Says why a first run stands still: the operators are compiled for the machine, and their code is kept.

Where Spark runs in the driver's process, workers are forked from one that compiles all operators before there is any
task (`hindstream.spark.session.daemon`). It says so by a file, whose name the driver has given it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.kernels.compiled import compiling_told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

COMPILING = "compiling the operators, once for each installation"
_VARIABLE = "HINDSTREAM_COMPILING"
_OPTION = f"spark.executorEnv.{_VARIABLE}"


def mark_option(folder: Path) -> dict[str, str]:
    """Of Spark's configuration: the file of this driver."""
    return {_OPTION: str(folder / f"compiling-{os.getpid()}")}


def mark_of(context: SparkContext) -> Path | None:
    """The file that is there as long as operators are compiled; None: nobody makes one."""
    file = context.getConf().get(_OPTION)
    return None if file is None else Path(file)


@contextmanager
def marked() -> Iterator[None]:
    """Around what loads the operators' code: makes the file when some of it has to be compiled.

    The variable is gone then: what runs in a worker may read settings, and this is none.
    """
    file = os.environ.pop(_VARIABLE, None)
    if file is None:
        yield
        return
    try:
        with compiling_told(lambda: _touch(Path(file))):
            yield
    finally:
        with suppress(OSError):
            Path(file).unlink(missing_ok=True)


def _touch(file: Path) -> None:
    with suppress(OSError):  # nothing depends on it
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
