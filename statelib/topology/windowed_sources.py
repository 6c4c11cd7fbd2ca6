"""Topics with windowed keys that are joined or stored together: their windows have to be of one kind and size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.columns.windowed_type import SESSIONS, KeyWindows
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
from statelib.topology.nodes import Processor, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topology.nodes import Node


def check_windowed_sources(nodes: Sequence[Node]) -> None:
    """Looks whether sources whose keys are joined or stored together have the same windows, as far as serdes tell.

    Behind the source such a key is a struct, which does not tell its window's size any more.

    Args:
        nodes: Of a sub-topology, parents before their children.

    Raises:
        ConfigurationError: They have not; it names the node, both topics and their windows.
    """
    known: dict[str, dict[KeyWindows, str]] = {}  # by node: of each kind of windows a topic
    for node in nodes:
        if isinstance(node, Source):
            windows = _windows_of(node)
            known[node.name] = {} if windows is None else {windows: node.topic}
            continue
        known[node.name] = {of: topic for parent in node.parents for of, topic in known[parent].items()}
        has_keys = isinstance(node, Processor) and (node.stores or node.spec.state_stores())
        if has_keys and len(known[node.name]) > 1:
            (one, first), (other, second), *_ = known[node.name].items()
            raise ConfigurationError(
                f"the keys of topic {first} have {one}, those of topic {second} {other}: they can never match",
                node=node.name,
                next_step="give both keys without windows with select_key() before, or read them with one serde"
                " if their windows are the same",
            )


def _windows_of(source: Source) -> KeyWindows | None:
    match source.consumed.key_serde:
        case TimeWindowedSerde(window_size_ms=size_ms):
            return KeyWindows("time", size_ms)
        case SessionWindowedSerde():
            return SESSIONS
        case _:
            return None
