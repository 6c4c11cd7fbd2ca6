"""What every contestant says of itself, so that all are measured in the same way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from benchmarks.nexmark.answers import ANSWERS, peers_answer
from benchmarks.nexmark.dataset import Dataset


class Contestant(ABC):
    """Runs queries over a dataset, each in a process of its own.

    Attributes:
        name: For ``--only``.
        title: For the table.
        settings: How it is set up, in a sentence or two, printed beside its figures.
        queries: The names of those it can do.
        differs: Queries whose answers are others than DuckDB's by their nature, and why; they are not compared.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    settings: ClassVar[str]
    queries: ClassVar[tuple[str, ...]] = tuple(ANSWERS)
    differs: ClassVar[dict[str, str]] = {}

    def build(self) -> None:  # noqa: B027 - most have nothing to do
        """What is done once for all datasets, not measured: compiling."""

    def prepare(self, dataset: Dataset) -> None:  # noqa: B027
        """Makes of a dataset what it reads, beside it in a folder of its own: once, not measured."""

    def lay_out(self, query: str, dataset: Dataset, output: Path) -> None:  # noqa: B027
        """What must lie in ``output`` before a measured command begins. Not measured."""

    @abstractmethod
    def command(self, query: str, dataset: Dataset, output: Path) -> list[str]:
        """The command that runs ``query`` and leaves its answer in ``output``.

        All of it is measured, with all its descendants; it must leave none behind.
        """

    def answer(self, query: str, output: Path) -> str:
        """The answer in ``output``, as a SELECT of DuckDB's."""
        return peers_answer(output)
