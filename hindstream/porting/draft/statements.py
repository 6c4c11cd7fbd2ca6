"""The statements of a draft while they are found: variables, options, and the numbers that they count."""

from __future__ import annotations

import json
import keyword
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hindstream.porting.draft.description import is_generated, number_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hindstream.porting.draft.description import Node
    from hindstream.porting.draft.knowledge import Knowledge

Shape = Literal["stream", "table", "global", "regrouped", "split"]

_LONGEST = 40
SUFFIX = "-repartition"
BUFFER = "-Buffer"
"""What the store of a join ends with whose records wait."""

_INTERNAL = re.compile(r"-repartition$|-topic$")


@dataclass(frozen=True, slots=True)
class Made:
    """What a node gives.

    Attributes:
        variable: Its name in the file.
        shape: What it is.
        stores: By which a join finds a table.
    """

    variable: str
    shape: Shape
    stores: tuple[str, ...] = ()


@dataclass
class Recognised:
    """What was recognised.

    Attributes:
        lines: Statements and comments.
        made: Of lines that make a stream or table, its variable and what the application calls its node.
        unknown: What cannot be told, a sentence each; the comments say so where it is.
        names: Of this project, what the statements use.
        optimizations: What the text shows of Kafka's ``topology.optimization``.
    """

    lines: list[str] = field(default_factory=list)
    made: dict[int, tuple[str, str]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    optimizations: set[str] = field(default_factory=set)


class Statements:
    """See the module's docstring.

    Args:
        nodes: The topology.
        knowledge: What Kafka's classes know of it.
    """

    def __init__(self, nodes: Mapping[str, Node], knowledge: Knowledge) -> None:
        self._nodes = nodes
        self._knows = knowledge
        self._made: dict[str, Made] = {}
        self._done: set[str] = set()
        self._found = Recognised()
        self._variables: set[str] = {"builder", "job", "todo", "todo_processor", "pa", "timedelta"}
        self._counted = 0  # the number that the next call uses, if all calls before are known
        self._readers = {node.topic: node for node in nodes.values() if node.kind == "Source" and node.topic}
        self._written = {node.topic for node in nodes.values() if node.kind == "Sink" and node.topic}
        waiting = [node for node in nodes.values() if any(store.endswith(BUFFER) for store in node.stores)]
        self._versioned = {store for node in waiting for store in node.stores if not store.endswith(BUFFER)}

    def _is_ready(self, node: Node) -> bool:
        return not self._is_behind(node) and all(parent in self._made for parent in node.parents)

    def _is_behind(self, node: Node) -> bool:
        """Whether a source reads what the topology writes for itself: it comes with the sink."""
        return node.kind == "Source" and node.topic in self._written and _INTERNAL.search(node.topic) is not None

    def _is_own(self, node: Node, store: str) -> bool:
        """Whether a store's number was counted with the node."""
        kind = self._knows.kind(node.name)
        looks = {"join", "join_window", "process", "process_values", None}
        return re.search(r"-STATE-STORE-\d{10}$", store) is not None and (node.kind == "Source" or kind not in looks)

    def _then(self, node: Node, call: str, shape: Shape) -> bool:
        """``variable = parent.call``; of what ends a stream, no variable."""
        parent = self._made[node.parents[0]]
        if call.startswith((".foreach", ".print")):
            self._line(f"{parent.variable}{call}", node)
            return True
        variable = self._variable(self._title(node) if shape == "table" else node.name)
        self._assign(variable, f"{parent.variable}{call}", node)
        stores = node.stores or (parent.stores if shape == parent.shape == "table" else ())
        self._made[node.name] = Made(variable, shape, stores)
        return True

    def _call(self, method: str, node: Node, whats: Iterable[str]) -> str:
        todos = [f'todo("{node.name}: {what}")' for what in whats]
        is_table = self._made[node.parents[0]].shape == "table"
        options = [*self._named(node), *(self._kept(node) if is_table else [])]
        return f".{method}({', '.join([*todos, *options])})"

    def _kept(self, node: Node) -> list[str]:
        """The store of a table that need not have one."""
        if not node.stores:
            return []
        self._use("Materialized")
        (store, *_) = node.stores
        given = f".as_({text_of(store)})" if self._is_given_store(store) else "()"
        return [f"materialized=Materialized{given}"]

    def _materialized(self, node: Node) -> list[str]:
        if node.stores and node.stores[0] in self._versioned:
            self._use("Materialized", "Stores", "timedelta")
            self._comment(f"the history retention of {node.stores[0]} is not told")
            store = f"Stores.persistent_versioned_key_value_store({text_of(node.stores[0])}, timedelta(days=1))"
            return [f"materialized=Materialized.as_({store})"]
        if not node.stores or not self._is_given_store(node.stores[0]):
            return []
        self._use("Materialized")
        return [f"materialized=Materialized.as_({text_of(node.stores[0])})"]

    def _named(self, node: Node, keyword: str = "named") -> list[str]:
        if not self._is_given(node.name):
            return []
        self._use("Named")
        return [f"{keyword}=Named.as_({text_of(node.name)})"]

    def _option(self, kind: Literal["Consumed", "Produced", "Joined"], name: str) -> list[str]:
        if not self._is_given(name):
            return []
        self._use(kind)
        return [f"{kind.lower()}={kind}.as_({text_of(name)})"]

    def _is_given(self, name: str) -> bool:
        return not is_generated(name)

    def _is_given_store(self, store: str) -> bool:
        return re.search(r"-STATE-STORE-\d{10}$", store) is None

    def _title(self, node: Node) -> str:
        """What a table is called: as its store, if somebody has named that."""
        return next((store for store in node.stores if number_of(store) is None), node.name)

    def _variable(self, of: str) -> str:
        short = re.sub(r"^(?:COGROUP)?K(STREAM|TABLE)-|-?0{2,}", lambda found: "" if found[1] else "_", of)
        name = re.sub(r"\W+", "_", short.lower()).strip("_") or "part"
        name = f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
        name = name[:_LONGEST].rstrip("_")
        number, unique = 2, name
        while unique in self._variables:
            unique, number = f"{name}_{number}", number + 1
        self._variables.add(unique)
        return unique

    def _assign(self, variable: str, expression: str, *nodes: Node) -> None:
        """A statement that makes nodes; its variable is the last of them."""
        self._found.made[len(self._found.lines)] = (variable, nodes[-1].name)
        self._line(f"{variable} = {expression}", *nodes)

    def _line(self, statement: str, *nodes: Node) -> None:
        self._found.lines.append(statement)
        self._count(nodes)
        self._done |= {node.name for node in nodes}

    def _count(self, nodes: Iterable[Node]) -> None:
        """Each node counts, whether its number is used or somebody has named it; a store, if nobody has."""
        for node in nodes:
            numbers = (node.number, *(number_of(store) for store in node.stores if self._is_own(node, store)))
            used = [number + 1 for number in numbers if number is not None]
            self._counted = max([self._counted + (node.number is None), *used])

    def _comment(self, what: str) -> None:
        if what not in self._found.unknown:
            self._found.unknown.append(what)
            self._found.lines.append(f"# TODO: {what}")

    def _use(self, *names: str) -> None:
        self._found.names |= {*names}


def text_of(name: str) -> str:
    """A name as it is written in a file."""
    return json.dumps(name, ensure_ascii=False)
