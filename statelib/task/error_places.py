"""Where an error of an operator was: its node, the user's line that has added it, and the source record."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError, HindstreamError
from statelib.errors.user_lines import place_beside
from statelib.records.batch import NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.records.batch import Uptake
    from statelib.topology import Node


class ErrorPlaces:
    """Those of one task.

    Args:
        nodes: The task's.
        topics: Its source topics, by `Uptake.source`.
    """

    def __init__(self, nodes: Sequence[Node], topics: Sequence[str]) -> None:
        self._line_of = {node.name: node.line for node in nodes}
        self._topics = topics

    @contextmanager
    def placing(self, node: str, uptake: Uptake | None) -> Iterator[None]:
        """Says where an error of an operator was, and, of what the user has to change, the line that has added it.

        Args:
            node: Its node's name.
            uptake: What it was processed with; None: no records of the input.
        """
        try:
            yield
        except HindstreamError as error:
            line, place = self._line_of[node], {"node": node, **self._record(error, uptake)}
            if isinstance(error, ConfigurationError) and line is not None and "file" not in error.place:
                place |= place_beside(line, error)
            if place.keys() <= error.place.keys():
                raise
            raise error.placed(**place) from error

    def _record(self, error: HindstreamError, uptake: Uptake | None) -> dict[str, object]:
        """Topic, partition and offset of the source record that an operator knows by a sequence; empty: of none."""
        if error.sequence is None or uptake is None:
            return {}
        row = error.sequence - uptake.first_sequence
        if not 0 <= row < len(uptake) or (offset := int(uptake.offset[row])) == NO_OFFSET:
            return {}
        topic = self._topics[int(uptake.source[row])]
        return {"topic": topic, "partition": int(uptake.partition[row]), "offset": offset}
