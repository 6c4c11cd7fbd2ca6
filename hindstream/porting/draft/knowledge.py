"""What Kafka's classes know of a topology's processors: what kind they are, their windows, which joins are left ones.

Without a jar only generated names tell the kind of a processor, and nothing tells windows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_CLASS = {
    "KStreamFilter": "filter", "KTableFilter": "filter", "KStreamMapValues": "map_values",
    "KTableMapValues": "map_values", "KStreamMap": "map", "KStreamFlatMap": "flat_map",
    "KStreamFlatMapValues": "flat_map_values", "KStreamPeek": "peek", "KStreamPrint": "print",
    "KStreamBranch": "split", "KStreamAggregate": "aggregate", "KStreamReduce": "reduce",
    "KStreamWindowAggregate": "aggregate", "KStreamSlidingWindowAggregate": "aggregate",
    "KStreamSessionWindowAggregate": "aggregate", "KTableTransformValues": "transform_values",
    "KTableSuppressProcessorSupplier": "suppress", "KTableRepartitionMap": "regroup",
    "KTableAggregate": "table_aggregate", "KTableReduce": "table_reduce", "KStreamKTableJoin": "join",
    "KStreamGlobalKTableJoin": "global_join", "KTableSource": "table", "KStreamJoinWindow": "join_window",
    "KTableKTableJoinMerger": "table_join", "SubscriptionSendProcessorSupplier": "foreign_key",
}  # fmt: skip
_OF_NAME = {
    "KSTREAM-FILTER": "filter", "KTABLE-FILTER": "filter", "KSTREAM-MAPVALUES": "map_values",
    "KTABLE-MAPVALUES": "map_values", "KSTREAM-MAP": "map", "KSTREAM-KEY-SELECT": "select_key",
    "KSTREAM-FLATMAP": "flat_map", "KSTREAM-FLATMAPVALUES": "flat_map_values", "KSTREAM-PEEK": "peek",
    "KSTREAM-FOREACH": "foreach", "KSTREAM-PRINTER": "print", "KSTREAM-MERGE": "merge", "KSTREAM-BRANCH": "split",
    "KSTREAM-PROCESSOR": "process", "KSTREAM-PROCESSVALUES": "process_values", "KSTREAM-TRANSFORM": "process",
    "KSTREAM-TRANSFORMVALUES": "process_values", "KTABLE-TOSTREAM": "to_stream", "KSTREAM-TOTABLE": "to_table",
    "KSTREAM-AGGREGATE": "aggregate", "KSTREAM-REDUCE": "reduce", "KTABLE-AGGREGATE": "table_aggregate",
    "KTABLE-REDUCE": "table_reduce", "KTABLE-SELECT": "regroup", "KTABLE-TRANSFORMVALUES": "transform_values",
    "COGROUPKSTREAM-AGGREGATE": "cogroup", "KTABLE-SUPPRESS": "suppress", "KSTREAM-JOIN": "join",
    "KSTREAM-LEFTJOIN": "join",
    "KSTREAM-WINDOWED": "join_window", "KTABLE-SOURCE": "table", "KTABLE-MERGE": "table_join",
    "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION": "foreign_key",
}  # fmt: skip
_SETTING = re.compile(r"(\w+)=(-?\d+)")


@dataclass(frozen=True, slots=True)
class Knowledge:
    """See the module's docstring.

    Attributes:
        processors: As `hindstream.porting.protocol.Ready` has them; empty: there is no jar.
    """

    processors: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def kind(self, name: str) -> str | None:
        """What a processor is, as a method of the DSL mostly; None: nobody knows."""
        of_name = _OF_NAME.get(re.sub(r"-\d{10,}$", "", name))
        return of_name or _OF_CLASS.get(self.processors.get(name, ("", ""))[0])

    def is_negated(self, name: str) -> bool:
        """Whether a filter is a ``filterNot``."""
        return "filterNot=true" in self._text(name)

    def is_left(self, name: str) -> bool | None:
        """Whether a join keeps what meets nobody; None: nobody knows."""
        if name in self.processors:
            return "leftJoin=true" in self._text(name)
        return True if "LEFTJOIN" in name else False if re.match(r"KSTREAM-JOIN-\d{10}$", name) else None

    def windows(self, name: str) -> str | None:
        """The windows of an aggregation, as this project writes them; None: it has none, or nobody knows."""
        found = re.search(r"\bwindows=(\w+)\{(.*?)\}", self._text(name))
        if found is None:
            return None
        of = {setting: int(number) for setting, number in _SETTING.findall(found[2])}
        match found[1]:
            case "TimeWindows":
                hop = "" if of["advanceMs"] == of["sizeMs"] else f".advance_by({_ms(of['advanceMs'])})"
                return f"TimeWindows.of_size_and_grace({_ms(of['sizeMs'])}, {_ms(of['graceMs'])}){hop}"
            case "SlidingWindows":
                return f"SlidingWindows.of_time_difference_and_grace({_ms(of['sizeMs'])}, {_ms(of['graceMs'])})"
            case "SessionWindows":
                return f"SessionWindows.of_inactivity_gap_and_grace({_ms(of['gapMs'])}, {_ms(of['graceMs'])})"
            case "UnlimitedWindows":
                return "UnlimitedWindows.of()"
            case _:
                return None

    def join_windows(self, name: str) -> str | None:
        """Those of a join of two streams, by one of its sides; None: nobody knows."""
        of = {setting: int(number) for setting, number in _SETTING.findall(self._text(name))}
        if "retentionPeriod" in of:  # of a stream with itself
            before, after = of["joinThisBeforeMs"], of["joinThisAfterMs"]
            of |= {"windowsBeforeMs": before, "windowsAfterMs": after}
            of["joinGraceMs"] = of["retentionPeriod"] - before - after
        if "windowsBeforeMs" not in of:
            return None
        before, after, grace = of["windowsBeforeMs"], of["windowsAfterMs"], of["joinGraceMs"]
        behind = "" if before == after else f".after({_ms(after)})"
        return f"JoinWindows.of_time_difference_and_grace({_ms(before)}, {_ms(grace)}){behind}"

    def suppressed(self, name: str) -> str | None:
        """What a suppress waits for; None: nobody knows."""
        text = self._text(name)
        if not text:
            return None
        if "safeToDropTombstones=true" in text:
            return "Suppressed.until_window_closes(BufferConfig.unbounded())"
        found = re.search(r"timeToWaitForMoreEvents=PT([\d.]+)S", text)
        return None if found is None else (
            f"Suppressed.until_time_limit(timedelta(seconds={found[1]}), BufferConfig.unbounded())"
        )  # fmt: skip

    def _text(self, name: str) -> str:
        return self.processors.get(name, ("", ""))[1]


def _ms(milliseconds: int) -> str:
    for unit, many in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1_000)):
        if milliseconds and milliseconds % many == 0:
            return f"timedelta({unit}={milliseconds // many})"
    return f"timedelta(milliseconds={milliseconds})"
