"""Those who look on while a task runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.records.batch import Batch


class Tap(Protocol):
    """Looks on while a task runs."""

    def __call__(self, node: str, batch: Batch, /) -> object:
        """What a node forwards, or what reaches a sink: with the sequences of the source records that caused it."""


@dataclass(slots=True)
class NodeSeconds:
    """How long each node took, by its name; adds up over batches, tasks and runs.

    Attributes:
        clock: Seconds.
    """

    clock: Callable[[], float]
    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0
    _node: str | None = None

    def begin(self, node: str) -> None:
        """A node begins, and the one before it is done."""
        self.end()
        self._node, self._since = node, self.clock()

    def end(self) -> None:
        """The node that has begun last is done."""
        if self._node is not None:
            self.seconds[self._node] = self.seconds.get(self._node, 0.0) + self.clock() - self._since
            self._node = None
