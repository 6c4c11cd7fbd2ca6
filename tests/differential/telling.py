"""The custom processors of random programs, as ``Telling.java`` and ``Suffixing.java``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import Processor, PunctuationType, Record, Stores, ValueAndTimestamp, ValueTransformerWithKey, Windowed
from tests.differential import functions

if TYPE_CHECKING:
    from statelib import ProcessorContext, StoreBuilder
    from tests.differential.program import Step


_WINDOW_MS = 10
_KEPT = timedelta(hours=1)


def lists_builder(name: str) -> StoreBuilder[Any]:
    """Of the store in which a processor keeps all that it has forwarded for a key, by window."""
    windows = timedelta(milliseconds=_WINDOW_MS)
    supplier = Stores.persistent_timestamped_window_store(name, _KEPT, windows, retain_duplicates=True)
    return Stores.timestamped_window_store_builder(supplier, pa.string(), pa.string())


class Telling(Processor):
    """Forwards each record several times: to one child, to another, or (None) to all; and one more when it is called.

    In a store, if it uses one, it keeps what it has forwarded last for a key, and tells it with the next; of a table's
    store it tells what it has, and may put there what it forwards.

    Args:
        step: Says to which children, how often it is called, and which store it uses.
    """

    def __init__(self, step: Step) -> None:
        self._step = step

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        uses, table = self._step.get("uses"), self._step.get("table")
        self._store = None if uses is None else context.get_state_store(uses)
        self._table = None if table is None else context.get_state_store(table)
        self._lists = context.get_state_store(self._step["lists"]) if "lists" in self._step else None
        self._global = context.get_state_store(self._step["global"]) if "global" in self._step else None
        if "tick" in self._step:
            clocks = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME
            clock = clocks[self._step.get("by_wall_clock", False)]
            context.schedule(timedelta(milliseconds=self._step["tick"]), clock, self._tick)

    def _tick(self, timestamp_ms: int) -> None:
        self._context.forward(Record("a", self._kept("a", f"t{timestamp_ms}", timestamp_ms), timestamp_ms))
        if "fails" in self._step:
            functions.fail_for_some(f"t{timestamp_ms}")
            self._context.forward(Record("b", self._kept("b", f"u{timestamp_ms}", timestamp_ms), timestamp_ms))

    def process(self, record: Record) -> None:
        for number, child in enumerate(self._step["forwards"]):
            if number and "fails" in self._step:
                functions.fail_for_some(record.value)
            value = self._kept(record.key, functions.suffixed(record.value, f"p{number}"), record.timestamp)
            self._context.forward(record.with_value(value), child)

    def _kept(self, key: Any, value: str | None, timestamp: int) -> str | None:
        if self._store is not None:
            name = _text(key)
            value = functions.joined(self._store.get(name), value)
            self._store.put(name, value)
        if self._table is not None and key is not None:
            found = self._table.get(key)
            value = functions.joined(None if found is None else found.value, value)
            if self._step["writes"]:
                self._table.put(key, ValueAndTimestamp.make(value, timestamp))
        if self._lists is not None:
            name = _text(key)
            self._lists.put(name, ValueAndTimestamp.make(value, timestamp), timestamp - timestamp % _WINDOW_MS)
            found = [f"{of}@{at}" for _, (of, at) in self._lists.fetch(name, 0, timestamp)]
            value = functions.joined(",".join(found), value)
        if self._global is not None:
            value = functions.joined(self._global.get(functions.text(key)), value)
        return value


class Suffixing(ValueTransformerWithKey):
    """Gives each value, also null, a suffix, and tells what it has made last for the key.

    Args:
        step: Says which suffix, and where that is kept.
    """

    def __init__(self, step: Step) -> None:
        self._step = step

    def init(self, context: ProcessorContext) -> None:
        self._store = context.get_state_store(self._step["uses"])

    def transform(self, read_only_key: Any, value: Any) -> str:
        name, made = _text(read_only_key), functions.cut(functions.text(value) + self._step["suffix"])
        made = functions.joined(self._store.get(name), made)
        self._store.put(name, made)
        return made


def _text(key: Any) -> str:
    return functions.key_text(*key) if isinstance(key, Windowed) else functions.text(key)
