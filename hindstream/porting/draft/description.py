"""What Kafka Streams' ``Topology.describe()`` prints, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from statelib.errors.kinds import ConfigurationError

_NODE = re.compile(r"^\s*(Source|Processor|Sink):\s+(\S+) \((topics?|stores|extractor class): (.*)\)\s*$")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ARROW = re.compile(r"^\s*(-->|<--) (.*)$")
_PART = re.compile(r"Sub-topology: (\d+)(.*)$")
_NUMBER = re.compile(r"-(\d{10})(?!\d)|-(\d{10})(?=\d+$)")


@dataclass
class Node:
    """A node.

    Attributes:
        kind: What it is.
        name: Its name.
        part: The number of its sub-topology.
        is_global: Whether it is of a global store.
        topics: Of a source or sink; of a pattern, or of a sink that chooses topics record by record, none.
        stores: Of a processor.
        pattern: Of a source whose topics a pattern chooses; empty: none does.
        children: In the order of the text, which is not that of the program.
        parents: The same.
    """

    kind: Literal["Source", "Processor", "Sink"]
    name: str
    part: int
    is_global: bool
    topics: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    pattern: str = ""
    children: list[str] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)

    @property
    def topic(self) -> str:
        """The only topic; empty: there is none, or there are several."""
        return self.topics[0] if len(self.topics) == 1 else ""

    @property
    def number(self) -> int | None:
        """The number in a name that was generated; None: somebody has given it, or it has its split's."""
        return number_of(self.name) if re.fullmatch(r"(COGROUP)?K(STREAM|TABLE)-[A-Z-]+-\d{10}", self.name) else None


def is_generated(name: str) -> bool:
    """Whether a node's name was generated, or a branch's with its number behind."""
    return re.fullmatch(r"(COGROUP)?K(STREAM|TABLE)-[A-Z-]+-\d{10,}", name) is not None


def number_of(name: str) -> int | None:
    """The number in a generated name of a node, store or topic; None: it has none."""
    found = _NUMBER.search(name)
    return None if found is None else int(found[1] or found[2])


def read_description(text: str) -> dict[str, Node]:
    """The nodes by name, in the order of the text.

    Raises:
        ConfigurationError: It is no such text.
    """
    nodes: dict[str, Node] = {}
    part, is_global, last = -1, False, None
    for line in text.splitlines():
        if found := _PART.search(line):
            part, is_global = int(found[1]), "global" in found[2]
        elif found := _NODE.match(line):
            names = tuple(filter(None, found[4].strip("[]").split(", ")))
            is_stores = found[3] == "stores"
            is_pattern = found[1] == "Source" and not found[4].startswith("[")
            pattern = found[4] if is_pattern else ""
            topics = () if is_stores or is_pattern or found[3].startswith("extractor") else names
            last = Node(
                found[1],  # type: ignore[arg-type]
                found[2],
                part,
                is_global,
                topics,
                names if is_stores else (),
                pattern,
            )
            nodes[last.name] = last
        elif last is not None and (found := _ARROW.match(line)):
            names_ = [] if found[2].strip() == "none" else [name.strip() for name in found[2].split(",")]
            (last.children if found[1] == "-->" else last.parents).extend(names_)
    named = [name for node in nodes.values() for name in (node.name, *node.topics, *node.stores)]
    if strange := next((name for name in named if not _NAME.fullmatch(name)), None):
        step = "give the text that Topology.describe() prints: names have letters, digits, '.', '_' and '-'"
        raise ConfigurationError(f"this is no description of a topology: {strange} is no name", next_step=step)
    unknown = {name for node in nodes.values() for name in (*node.children, *node.parents)} - nodes.keys()
    if not nodes or unknown:
        what = f"the text names {', '.join(sorted(unknown))}, and has no such node" if unknown else "there is no node"
        step = "give the whole text that Topology.describe() prints"
        raise ConfigurationError(f"this is no description of a topology: {what}", next_step=step)
    return nodes
