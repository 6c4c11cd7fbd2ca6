"""The calls of the DSL that make a topology, recognised by what its nodes are called and how they hang together.

Calls come in the order of the numbers in generated names, since each call counts: so the names that are generated here
are those of the application.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hindstream.porting.draft.aggregations import Aggregations
from hindstream.porting.draft.description import is_generated, number_of
from hindstream.porting.draft.joins import Joins
from hindstream.porting.draft.statements import SUFFIX, Made, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hindstream.porting.draft.description import Node
    from hindstream.porting.draft.knowledge import Knowledge
    from hindstream.porting.draft.statements import Recognised

_OF_RECORDS = {
    "map_values": "the value", "flat_map": "the records", "flat_map_values": "the values", "select_key": "the key",
    "transform_values": "the value", "peek": "what it does", "foreach": "what it does", "filter": "the condition",
}  # fmt: skip


class Recogniser(Joins, Aggregations):
    """See the module's docstring.

    Args:
        nodes: The topology.
        knowledge: What Kafka's classes know of it.
    """

    def __init__(self, nodes: Mapping[str, Node], knowledge: Knowledge) -> None:
        super().__init__(nodes, knowledge)
        self._added: set[str] = set()

    def recognise(self, *, asks: bool = True) -> Recognised:
        """All statements; ``asks``: with a comment on what of the optimisation no text tells."""
        while waiting := [node for name, node in self._nodes.items() if name not in self._done]:
            ready = sorted((node for node in waiting if self._is_ready(node)), key=self._order)
            if not any(self._try(node) for node in ready):
                self._give_up(ready[0] if ready else waiting[0])
        if asks and self._found.optimizations and self._has_tables_of_topics():
            self._comment("whether tables have their topics as changelogs (reuse.ktable.source.topics) is not told")
        return self._found

    def _has_tables_of_topics(self) -> bool:
        return any(node.kind == "Source" and self._table_stores(node) for node in self._nodes.values())

    def _order(self, node: Node) -> tuple[int, int]:
        """By the first number that the call has used. What has none comes where numbers are missing."""
        numbers = [number_of(name) for name in (*node.stores, *self._table_stores(node)) if self._is_own(node, name)]
        if re.match(r"KTABLE-(JOIN|OUTER)\w+-\d{10}$", node.name):  # a side of a join, which is named first
            numbers += [self._nodes[child].number for child in node.children]
        own = [number for number in (node.number, *numbers) if number is not None]
        if self._is_repartition(node) and self._is_implied(self._nodes[node.children[0]]):
            return (-1, 0)  # it is no statement of its own; what is merged was counted last
        return (min(own), 0) if own else (self._counted, 1)

    def _table_stores(self, node: Node) -> tuple[str, ...]:
        child = self._nodes[node.children[0]] if len(node.children) == 1 else None
        if node.kind == "Source" and child is not None and self._knows.kind(child.name) == "table":
            return child.stores
        return ()

    def _try(self, node: Node) -> bool:
        """Recognises the call that has made a node, with all others that it has made; no, if it has to wait."""
        if node.is_global:
            return self._global_table(node)
        if node.kind == "Source":
            return self._source(node)
        if node.kind == "Sink":
            return self._sink(node)
        if self._is_repartition(node):
            return self._repartition(node)
        return self._processor(node)

    def _source(self, node: Node) -> bool:
        child = self._nodes[node.children[0]] if len(node.children) == 1 else None
        if not node.topics:
            self._comment(
                f"a pattern chooses the topics of {node.name}: write stream(re.compile({text_of(node.pattern)}),"
                " topics=[...]), with all that it matches"
            )
        topic = node.topics[0] if node.topics else "TOPIC"
        if child is not None and self._is_table_source(node, child):
            variable = self._variable(topic)
            arguments = [text_of(topic), *self._materialized(child), *self._table_name(child)]
            self._assign(variable, f"builder.table({', '.join(arguments)})", node, child)
            self._made[node.name] = self._made[child.name] = Made(variable, "table", child.stores)
            return True
        variable = self._variable(" ".join(node.topics) or topic)
        read = f"[{', '.join(map(text_of, node.topics))}]" if len(node.topics) > 1 else text_of(topic)
        arguments = [read, *self._option("Consumed", node.name)]
        self._assign(variable, f"builder.stream({', '.join(arguments)})", node)
        self._made[node.name] = Made(variable, "stream")
        return True

    def _is_table_source(self, source: Node, child: Node) -> bool:
        is_one = self._knows.kind(child.name) == "table" or source.name == f"{child.name}-source"
        return is_one and child.parents == [source.name]

    def _table_name(self, table: Node) -> list[str]:
        if is_generated(table.name):
            return []
        self._use("Consumed")
        return [f"consumed=Consumed.as_({text_of(table.name)})"]

    def _global_table(self, node: Node) -> bool:
        of_part = [other for other in self._nodes.values() if other.part == node.part]
        source, processor = (next(one for one in of_part if one.kind == kind) for kind in ("Source", "Processor"))
        variable = self._variable(source.topic)
        arguments = [text_of(source.topic), *self._materialized(processor), *self._table_name(processor)]
        self._assign(variable, f"builder.global_table({', '.join(arguments)})", *of_part)
        self._made |= {one.name: Made(variable, "global", processor.stores) for one in of_part}
        return True

    def _sink(self, node: Node) -> bool:
        parent = self._made[node.parents[0]]
        if not node.topic:
            self._comment(f"which topics {node.name} may choose is not told: topics= lists all of them")
        topic = text_of(node.topic) if node.topic else f'todo("{node.name}: the topic")'
        named = [*([] if node.topic else ['topics=["TOPIC"]']), *self._option("Produced", node.name)]
        self._line(f"{parent.variable}.to({', '.join([topic, *named])})", node)
        return True

    def _is_repartition(self, node: Node) -> bool:
        sink = self._nodes[node.children[0]] if len(node.children) == 1 else None
        is_filter = self._knows.kind(node.name) == "filter" or node.name.endswith(f"{SUFFIX}-filter")
        return is_filter and sink is not None and self._is_internal(sink)

    def _repartition(self, node: Node) -> bool:
        sink = self._nodes[node.children[0]]
        source, base = self._readers[sink.topic], sink.topic.removesuffix(SUFFIX)
        parent = self._made[node.parents[0]]
        if self._is_implied(sink):  # by the aggregation, by to_table() or a join
            if self._is_merged(node, source, base):
                self._found.optimizations.add("merge.repartition.topics")
            self._done |= {node.name, sink.name, source.name}
            self._made |= dict.fromkeys((node.name, sink.name, source.name), parent)
            return True
        is_generated_ = re.fullmatch(r"KSTREAM-REPARTITION-\d{10}", base) is not None
        named = "" if is_generated_ else f"Repartitioned.as_({text_of(base)})"
        self._use(*(["Repartitioned"] if named else []))
        variable = self._variable(base)
        self._assign(variable, f"{parent.variable}.repartition({named})", node, sink, source)
        self._made |= dict.fromkeys((node.name, sink.name, source.name), Made(variable, "stream"))
        return True

    def _is_merged(self, node: Node, source: Node, base: str) -> bool:
        """Whether a repartition topic has come in the place of others.

        Then its nodes have its name, also where that was generated.
        """
        if node.name != f"{base}{SUFFIX}-filter":
            return False
        if re.fullmatch(r"KSTREAM.*-\d{10}", base):
            return True
        readers = [self._nodes[child] for child in source.children]
        return len(readers) != 1 or _names(base).isdisjoint((*readers[0].stores, readers[0].name))

    def _is_implied(self, sink: Node) -> bool:
        """Whether a repartition topic is called after an operator behind it, and not by somebody."""
        source, base = self._readers[sink.topic], sink.topic.removesuffix(SUFFIX)
        if is_generated(base) and base in self._nodes[sink.parents[0]].parents:
            return True  # a join without a name calls its topic after the stream
        waiting, seen = [*source.children], set[str]()
        while waiting:
            node = self._nodes[waiting.pop()]
            if node.name in seen or node.kind == "Sink":
                continue
            seen.add(node.name)
            if not _names(base).isdisjoint((*node.stores, node.name)):
                return True
            waiting += node.children
        return False

    def _processor(self, node: Node) -> bool:
        kind, parent = self._knows.kind(node.name), self._made[node.parents[0]]
        if parent.shape == "split":
            return self._branch(node)
        if kind == "map_values" and parent.shape == "table" and not is_generated(node.name):
            kind = "to_stream" if not node.stores and self._is_read_as_stream(node) else kind
        of_kind = {
            "to_stream": self._to_stream, "to_table": self._to_table, "map": self._map,
            "table": self._to_table, "print": self._print, "split": self._split,
            "merge": self._merge, "aggregate": self._aggregation, "reduce": self._aggregation,
            "cogroup": self._cogrouped,
            "regroup": self._regrouped, "table_aggregate": self._table_aggregation,
            "table_reduce": self._table_aggregation, "suppress": self._suppress, "join": self._table_join,
            "global_join": self._table_join, "process": self._process, "process_values": self._process,
        }  # fmt: skip
        if kind in of_kind:
            return of_kind[kind](node, kind)
        if kind in _OF_RECORDS:
            method = "filter_not" if kind == "filter" and self._knows.is_negated(node.name) else kind
            return self._then(node, self._call(method, node, [_OF_RECORDS[kind]]), parent.shape)
        return self._joined(node, kind)

    def _to_stream(self, node: Node, _: str) -> bool:
        return self._then(node, f".to_stream({', '.join(self._named(node))})", "stream")

    def _to_table(self, node: Node, _: str) -> bool:
        options = [*self._materialized(node), *self._named(node)]
        return self._then(node, f".to_table({', '.join(options)})", "table")

    def _print(self, node: Node, _: str) -> bool:
        self._use("Printed")
        name = f".with_name({text_of(node.name)})" if self._is_given(node.name) else ""
        return self._then(node, f".print(Printed.to_sys_out(){name})", "stream")

    def _map(self, node: Node, _: str) -> bool:
        return self._then(node, self._call("map", node, ["the key", "the value"]), "stream")

    def _is_read_as_stream(self, node: Node) -> bool:
        """Whether what reads a node's records is of streams: a sink, or what streams alone have."""
        children = [self._nodes[child] for child in node.children]
        tables = {"filter", "map_values", "to_stream", "regroup", "suppress", "transform_values", "table_join"}
        return any(child.kind == "Sink" or self._knows.kind(child.name) not in tables for child in children)

    def _split(self, node: Node, _: str) -> bool:
        """Branches come one by one: what is made of the first may come before the second is declared."""
        parent = self._made[node.parents[0]]
        split = self._variable(f"split {node.name}")
        self._assign(split, f"{parent.variable}.split({', '.join(self._named(node))})", node)
        self._made[node.name] = Made(split, "split")
        if len(node.children) > 1:
            self._comment("the order of the branches is not told: the first one that takes a record has it")
        return True

    def _branch(self, node: Node) -> bool:
        split = self._nodes[node.parents[0]]
        suffix = node.name.removeprefix(split.name)
        others = [name for name in split.children if name not in self._done and name != node.name]
        if any(_branch_order(name, split.name) < _branch_order(node.name, split.name) for name in others):
            return False
        parent, variable = self._made[split.name], self._variable(f"branch {node.name}")
        self._use("Branched")
        name = "" if suffix.isdigit() and is_generated(node.name) else f", {text_of(suffix)}"
        taken = f"Branched.with_consumer({variable}.append{name})"
        self._found.lines.append(f"{variable}: list[Any] = []")
        if suffix == "0":
            self._line(f"{parent.variable}.default_branch({taken})", node)
        else:
            condition = f'todo("{node.name}: the condition")'
            self._line(f"{parent.variable}.branch({condition}, {taken})", node)
        self._made[node.name] = Made(f"{variable}[0]", "stream")
        return True

    def _merge(self, node: Node, _: str) -> bool:
        one, *others = (self._made[parent] for parent in node.parents)
        other = others[0] if others else one
        arguments = [other.variable, *self._named(node)]
        return self._then(node, f".merge({', '.join(arguments)})", "stream")

    def _process(self, node: Node, kind: str) -> bool:
        self._add_stores(node)
        base = ", FixedKeyProcessor" if kind == "process_values" else ""
        self._use(*(["FixedKeyProcessor"] if base else []))
        processor = f'todo_processor("{node.name}"{base})'
        arguments = [processor, *map(text_of, node.stores), *self._named(node, keyword="named")]
        return self._then(node, f".{kind}({', '.join(arguments)})", "stream")

    def _gives_keys(self, node: Node) -> bool:
        """Whether what comes behind a node is repartitioned: then it may give other keys, and else it does not."""
        waiting, seen = [node.name], set[str]()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += self._nodes[name].children
        return any(self._is_repartition(self._nodes[name]) for name in seen)

    def _add_stores(self, node: Node) -> None:
        """Those of a processor, which somebody has added."""
        of_tables = {store for made in self._made.values() for store in made.stores}
        for store in node.stores:
            if store in of_tables or store in self._added:
                continue
            self._added.add(store)
            self._use("Stores")
            self._comment(f"what kind of store {store} is, and the types of its keys and values, are not told")
            supplier = f"Stores.persistent_key_value_store({text_of(store)})"
            made = f"Stores.key_value_store_builder({supplier}, pa.string(), pa.string())"
            self._line(f"builder.add_state_store({made})")

    def _give_up(self, node: Node) -> None:
        """A node that no call of the DSL is known for."""
        self._comment(f"what {node.name} is cannot be told by its name")
        parent = next((self._made[name] for name in node.parents if name in self._made), None)
        if parent is None:
            self._done.add(node.name)
            self._made[node.name] = Made("builder", "stream")
        elif parent.shape == "stream" and node.kind == "Processor":
            self._process(node, "process" if self._gives_keys(node) else "process_values")
        else:
            self._done.add(node.name)
            self._made[node.name] = parent


def _names(base: str) -> set[str]:
    """What the store or node is called after which a repartition topic is."""
    return {base, f"{base.removesuffix('-left')}-this-windowed", f"{base.removesuffix('-right')}-other-windowed"}


def _branch_order(name: str, split: str) -> tuple[bool, str]:
    """By number; the default branch, which has 0, is the last one."""
    suffix = name.removeprefix(split)
    return suffix == "0", suffix.rjust(4, "0")
