"""What every contestant says of itself, so that all are measured in the same way."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import measure
from benchmarks.works import WORKS

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.dataset import Dataset
    from benchmarks.measure import Cost
    from benchmarks.works import Work


class Contestant(ABC):
    """Does works over a dataset, each in a process of its own.

    Attributes:
        name: For ``--only``.
        title: For the table.
        settings: How it is set up, in a sentence or two, printed beside its figures.
        works: The names of what it can do.
        is_exact: Whether its answers equal Hindstream's, each key's records in the same order.
        agrees: The works in which number and sums of its answers equal Hindstream's at least. What differs elsewhere
            stands in `settings`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    settings: ClassVar[str]
    works: ClassVar[tuple[str, ...]] = tuple(WORKS)
    is_exact: ClassVar[bool] = False
    agrees: ClassVar[tuple[str, ...]] = ()

    def build(self) -> None:  # noqa: B027 - most have nothing to do
        """What is done once for all datasets, not measured: compiling."""

    def prepare(self, dataset: Dataset) -> None:  # noqa: B027
        """Makes of a dataset what it reads, beside it in a folder of its own: once, not measured."""

    def lay_out(self, work: Work, dataset: Dataset, output: Path) -> None:  # noqa: B027
        """What must lie in ``output`` before a measured command begins. Not measured."""

    @abstractmethod
    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """The command that does ``work`` and leaves its answer in ``output``. All of it is measured, with all its
        descendants; it must leave none behind.
        """

    def measure(self, command: list[str], output: Path, *, environment: dict[str, str], log: Path) -> Cost:
        """What a command of `command` takes; what it says goes into ``log``.

        Raises:
            subprocess.CalledProcessError: See `benchmarks.measure.measure`.
        """
        return measure(command, environment=environment, log=log)

    def answer(self, work: Work, output: Path) -> pa.Table:
        """The answer in ``output``, of the columns of ``work``, the records of each key in order."""
        files = sorted(output.rglob("*.parquet"))
        tables = [pq.ParquetFile(file).read() for file in files]
        return pa.concat_tables(
            [t.select(work.answer.names).cast(work.answer) for t in tables] or [work.answer.empty_table()]
        )

    def module(self, *arguments: object) -> list[str]:
        """The command that runs the contestant's own module."""
        return [sys.executable, "-m", type(self).__module__, *map(str, arguments)]
