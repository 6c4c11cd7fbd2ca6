"""Aggregations of streams and tables, and suppress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.porting.draft.statements import SUFFIX, Made, Statements, text_of

if TYPE_CHECKING:
    from hindstream.porting.draft.description import Node


class Aggregations(Statements):
    """See the module's docstring."""

    def _aggregation(self, node: Node, kind: str) -> bool:
        parent = self._made[node.parents[0]]
        windows = self._knows.windows(node.name)
        options = [*self._materialized(node), *self._named(node)]
        if windows is None and not self._knows.processors:
            self._comment(f"if {node.name} is of windows: .windowed_by(...) behind group_by_key(), which is not told")
        self._use("timedelta", *([windows.partition(".")[0]] if windows else []))
        functions = ["the reducer"] if kind == "reduce" else ["the initial value", "the aggregator"]
        if kind == "aggregate" and windows and windows.startswith("SessionWindows"):
            functions.append("the merger of two sessions")
        arguments = [f'todo("{node.name}: {what}")' for what in functions]
        call = "reduce"
        if kind == "aggregate":
            call = "aggregate_with"
            arguments.append("pa.string()")  # said at the top of the file
        variable, grouped = self._variable(self._title(node)), f"{parent.variable}.group_by_key()"
        if windows:
            self._line(f"{variable}_windows = {grouped}.windowed_by({windows})")
            grouped = f"{variable}_windows"
        self._assign(variable, f"{grouped}.{call}({', '.join([*arguments, *options])})", node)
        self._made[node.name] = Made(variable, "table", node.stores)
        return True

    def _cogrouped(self, node: Node, _: str) -> bool:
        """Several streams that are aggregated into one table: a node for each, and one behind them."""
        merge = self._nodes[node.children[0]] if len(node.children) == 1 else node
        sides = sorted((self._nodes[name] for name in merge.parents), key=lambda side: side.number or 0)
        if merge is node or not all(self._is_ready(side) for side in sides):
            return False
        variable = self._variable(self._title(node))
        for number, side in enumerate(sides):
            grouped, function = f"{self._made[side.parents[0]].variable}.group_by_key()", f"{side.name}: the aggregator"
            call = f"{grouped}.cogroup(" if not number else f"{variable}_streams.cogroup({grouped}, "
            self._line(f'{f"{variable}_streams = " if not number else ""}{call}todo("{function}"))')
        windows, functions = self._knows.windows(node.name), ["the initial value"]
        if windows:
            self._use("timedelta", windows.partition(".")[0])
            functions += ["the merger of two sessions"] if windows.startswith("SessionWindows") else []
        elif not self._knows.processors:
            self._comment(f"if {node.name} is of windows: .windowed_by(...) before aggregate_with(), which is not told")
        todos = [f'todo("{merge.name}: {what}")' for what in functions]
        arguments = [*todos, "pa.string()", *self._materialized(node), *self._named(merge)]
        windowed = f".windowed_by({windows})" if windows else ""
        call = f"{variable}_streams{windowed}.aggregate_with({', '.join(arguments)})"
        self._assign(variable, call, *sides, merge)
        self._made |= {one.name: Made(variable, "table", node.stores) for one in (*sides, merge)}
        return True

    def _regrouped(self, node: Node, _: str) -> bool:
        """A table whose rows are grouped: the aggregations behind it are made of it."""
        parent = self._made[node.parents[0]]
        sinks = [self._nodes[child] for child in node.children]
        if not all(self._is_internal(sink) for sink in sinks):
            return False
        readers = [child for sink in sinks for child in self._readers[sink.topic].children]
        bases = [sink.topic.removesuffix(SUFFIX) for sink in sinks]
        of_stores = {store for name in readers for store in self._nodes[name].stores}
        options = [f"grouped=Grouped.as_({text_of(bases[0])})"] if bases and bases[0] not in of_stores else []
        self._use(*(["Grouped"] if options else []))
        variable = self._variable(f"regrouped {bases[0] if bases else node.name}")
        todos = [f'todo("{node.name}: {what}")' for what in ("the key", "the value")]
        self._assign(variable, f"{parent.variable}.group_by({', '.join([*todos, *options])})", node)
        made = Made(variable, "regrouped")
        self._made[node.name] = made
        for sink in sinks:
            source = self._readers[sink.topic]
            self._done |= {sink.name, source.name}
            self._made |= {sink.name: made, source.name: made}
        return True

    def _table_aggregation(self, node: Node, kind: str) -> bool:
        parent = self._made[node.parents[0]]
        if parent.shape != "regrouped":
            return False
        functions = ["the adder", "the subtractor"]
        call, types = "reduce", []
        if kind == "table_aggregate":
            functions, call, types = ["the initial value", *functions], "aggregate_with", ["pa.string()"]
        arguments = [f'todo("{node.name}: {what}")' for what in functions]
        options = [*types, *self._materialized(node), *self._named(node)]
        variable = self._variable(self._title(node))
        self._assign(variable, f"{parent.variable}.{call}({', '.join([*arguments, *options])})", node)
        self._made[node.name] = Made(variable, "table", node.stores)
        return True

    def _suppress(self, node: Node, _: str) -> bool:
        suppressed = self._knows.suppressed(node.name)
        if suppressed is None:
            self._comment(f"what {node.name} waits for is not told")
            suppressed = "Suppressed.until_time_limit(timedelta(seconds=0), BufferConfig.unbounded())"
        self._use("Suppressed", "BufferConfig", "timedelta")
        name = f".with_name({text_of(node.name)})" if self._is_given(node.name) else ""
        return self._then(node, f".suppress({suppressed}{name})", "table")

    def _is_internal(self, sink: Node) -> bool:
        return sink.kind == "Sink" and sink.topic.endswith(SUFFIX) and sink.topic in self._readers
