"""Joins: each is several nodes, which belong together by their names and by who looks into whose store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hindstream.porting.draft.description import is_generated
from hindstream.porting.draft.statements import BUFFER, Made, Statements, text_of

if TYPE_CHECKING:
    from hindstream.porting.draft.description import Node

_OF_SIDE = re.compile(r"(-outer|-left)?-(this|other)-join(-store)?$")


class Joins(Statements):
    """See the module's docstring."""

    def _table_join(self, node: Node, _: str) -> bool:
        """A stream with a table."""
        is_left = self._knows.is_left(node.name)
        wanted = {store for store in node.stores if not store.endswith(BUFFER)}
        tables = [made for made in self._made.values() if made.shape == "table" and {*made.stores} & wanted]
        tables.sort(key=lambda made: {*made.stores} != wanted)
        globals_ = [made for made in self._made.values() if made.shape == "global"]
        if node.stores and not tables:
            return False  # the table comes later
        if not node.stores and not globals_:
            return False
        joined = "left_join" if is_left else "join"
        joiner = f'todo("{node.name}: the joiner")'
        if node.stores:
            options = self._joined_option(node)
            arguments = [tables[0].variable, joiner, *options]
        else:
            others = sorted({made.variable for made in globals_})
            if len(others) > 1:
                self._comment(f"which global table {node.name} is joined with is not told: {', '.join(others)}")
            key = f'todo("{node.name}: the key")'
            arguments = [others[0], key, joiner, *self._named(node)]
        return self._then(node, f".{joined}({', '.join(arguments)})", "stream")

    def _joined_option(self, node: Node) -> list[str]:
        """With a grace period, if records wait."""
        if not any(store.endswith(BUFFER) for store in node.stores):
            return self._option("Joined", node.name)
        self._comment(f"how long records wait in {node.name} is not told")
        self._use("Joined", "timedelta")
        of = f"Joined.as_({text_of(node.name)})" if self._is_given(node.name) else "Joined()"
        return [f"{of}.with_grace_period(timedelta(seconds=0))"]

    def _joined(self, node: Node, kind: str | None) -> bool:
        if kind == "join_window" or node.name.endswith(("-this-windowed", "-other-windowed")):
            return self._stream_join(node)
        if kind == "foreign_key":
            return self._foreign_key_join(node)
        if re.search(r"KTABLE-(JOIN|OUTER|LEFT)?(JOIN)?(THIS|OTHER)-\d{10}$|-join-(this|other)$", node.name):
            return self._join_of_tables(node)
        return False

    def _join_windows(self, side: str, merge: Node) -> str:
        windows = self._knows.join_windows(side)
        if windows is None:
            self._comment(f"the windows of {merge.name} are not told")
            windows = "JoinWindows.of_time_difference_with_no_grace(timedelta(seconds=0))"
        return windows

    def _self_join(self, windowed: Node, merge: Node) -> bool:
        """A stream with itself, with one store: inner joins and left ones are the same."""
        self._found.optimizations.add("single.store.self.join")
        store, stream = windowed.stores[0], self._made[windowed.parents[0]].variable
        call = "outer_join" if "OUTER" in store or "-outer-" in store else "join"
        options: list[str] = []
        if not is_generated(merge.name):
            options.append(f"StreamJoined(name={text_of(merge.name.removesuffix('-merge'))})")
        if _OF_SIDE.search(store):
            base = text_of(_OF_SIDE.sub("", store))
            options = [f"{options[0]}.with_store_name({base})" if options else f"StreamJoined.as_({base})"]
        self._use("JoinWindows", "timedelta", *(["StreamJoined"] if options else []))
        variable = self._variable(merge.name)
        joiner = f'todo("{merge.name}: the joiner")'
        arguments = [stream, joiner, self._join_windows(merge.name, merge), *options]
        self._assign(variable, f"{stream}.{call}({', '.join(arguments)})", windowed, merge)
        self._made |= {one.name: Made(variable, "stream") for one in (windowed, merge)}
        return True

    def _stream_join(self, node: Node) -> bool:
        """Two streams: both keep what they get, look into what the other keeps, and come together."""
        sides = [self._nodes[child] for child in node.children]
        if len(sides) == 1 and sides[0].parents == [node.name] and sides[0].stores == node.stores:
            return self._self_join(node, sides[0])
        merges = [self._nodes[child] for side in sides for child in side.children]
        if len(sides) != 1 or len(merges) != 1 or not all(parent in self._nodes for parent in merges[0].parents):
            return False
        this, other = self._sides(merges[0], ("THIS", "this"))
        windowed = [self._nodes[side.parents[0]] for side in (this, other)]
        if not all(self._is_ready(one) for one in windowed):
            return False
        left, right = (self._made[one.parents[0]] for one in windowed)
        windows = self._join_windows(this.name, merges[0])
        is_outer = ["OUTER" in side.name or "-outer-" in side.name for side in (this, other)]
        call = "outer_join" if all(is_outer) else "left_join" if any(is_outer) else "join"
        options: list[str] = []
        store = next((one.stores[0] for one in windowed if one.stores), "")
        if not is_generated(this.name):
            options.append(f"StreamJoined(name={text_of(_OF_SIDE.sub('', this.name))})")
        elif _OF_SIDE.search(store):
            options.append(f"StreamJoined.as_({text_of(_OF_SIDE.sub('', store))})")
        self._use("JoinWindows", "timedelta", *(["StreamJoined"] if options else []))
        joiner = f'todo("{merges[0].name}: the joiner")'
        variable = self._variable(merges[0].name)
        arguments = [right.variable, joiner, windows, *options]
        self._assign(variable, f"{left.variable}.{call}({', '.join(arguments)})", *windowed, this, other, merges[0])
        self._made |= {one.name: Made(variable, "stream") for one in (*windowed, this, other, merges[0])}
        return True

    def _join_of_tables(self, node: Node) -> bool:
        merges = [self._nodes[child] for child in node.children]
        if len(merges) != 1 or len(merges[0].parents) != 2:  # noqa: PLR2004 - both sides
            return False
        merge = merges[0]
        this, other = self._sides(merge, ("JOINTHIS", "OUTERTHIS", "-this"))
        if not (self._is_ready(this) and self._is_ready(other)):
            return False
        left, right = (self._made[one.parents[0]] for one in (this, other))
        call = self._how(this.name, other.name)
        named = [] if is_generated(merge.name) else self._named(merge)
        arguments = [right.variable, f'todo("{merge.name}: the joiner")', *named, *self._kept(merge)]
        variable = self._variable(merge.name)
        self._assign(variable, f"{left.variable}.{call}({', '.join(arguments)})", this, other, merge)
        stores = merge.stores or (*left.stores, *right.stores)
        self._made |= {one.name: Made(variable, "table", stores) for one in (this, other, merge)}
        return True

    def _how(self, this: str, other: str) -> str:
        """Which join of tables it is, by Kafka's class of a side."""
        of = {self._knows.processors.get(name, ("", ""))[0] for name in (this, other)}
        if not any(of):
            self._comment(f"whether {this} is of an inner, a left or an outer join is not told")
        if "KTableKTableOuterJoin" in of:
            return "outer_join" if "KTableKTableOuterJoin" in of and len(of) == 1 else "left_join"
        return "left_join" if "KTableKTableLeftJoin" in of else "join"

    def _foreign_key_join(self, node: Node) -> bool:
        """Two tables by a foreign key: a subscription goes to the right one, and its response comes back."""
        group = [node]
        while (behind := self._behind(group[-1])) is not None and "OUTPUT" not in group[-1].name:
            group.append(behind)
        answers = next((one for one in group if "RESPONSE" in one.topic and one.kind == "Sink"), None)
        foreign = [self._nodes[name] for name in (answers.parents if answers else ()) if self._nodes[name] not in group]
        if len(foreign) != 1 or not self._is_ready(foreign[0]):
            return False
        left, right, output = self._made[node.parents[0]], self._made[foreign[0].parents[0]], group[-1]
        is_left = self._knows.is_left(node.name)
        if is_left is None:
            self._comment(f"whether {output.name} is of an inner or a left join is not told")
        arguments = [right.variable, f'todo("{output.name}: the joiner")', *self._kept(output)]
        arguments.append(f'foreign_key=todo("{output.name}: the foreign key")')
        variable = self._variable(output.name)
        call = f"{left.variable}.{'left_join' if is_left else 'join'}({', '.join(arguments)})"
        self._assign(variable, call, *foreign, *group)
        self._made |= {one.name: Made(variable, "table", output.stores) for one in (*foreign, *group)}
        return True

    def _behind(self, node: Node) -> Node | None:
        """What comes behind a node of a join by a foreign key."""
        if node.kind == "Sink":
            return self._readers.get(node.topic)
        return self._nodes[node.children[0]] if len(node.children) == 1 else None

    def _sides(self, merge: Node, of_this: tuple[str, ...]) -> tuple[Node, Node]:
        one, other = (self._nodes[name] for name in (*merge.parents, *merge.parents)[:2])
        is_this = any(part in one.name for part in of_this)
        return (one, other) if is_this else (other, one)
