"""A contestant that is a script of ``benchmarks/peers``, as a peer's own user would write it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from benchmarks.contestants.contestant import Contestant

if TYPE_CHECKING:
    from benchmarks.dataset import Dataset
    from benchmarks.works import Work

PEERS = Path(__file__).parents[1] / "peers"


class Script(Contestant):
    """``python SCRIPT WORK TOPICS OUTPUT``; it imports nothing of ours, whose start would be added to the peer's.

    Attributes:
        script: Its name.
    """

    script: ClassVar[str]

    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """See the script."""
        return [sys.executable, str(PEERS / self.script), work.name, str(dataset.folder / "topics"), str(output)]
