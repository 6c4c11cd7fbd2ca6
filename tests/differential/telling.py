"""The custom processors of random programs, as ``Telling.java`` and ``Suffixing.java``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import (
    FixedKeyProcessor,
    Processor,
    PunctuationType,
    Record,
    Stores,
    ValueAndTimestamp,
    ValueTransformerWithKey,
    Windowed,
)
from tests.differential import functions
from tests.differential.own_stores import told

if TYPE_CHECKING:
    from statelib import FixedKeyRecord, ProcessorContext, StoreBuilder
    from tests.differential.program import Step


_WINDOW_MS = 10
_KEPT = timedelta(hours=1)


def key_value_builder(name: str) -> StoreBuilder[Any]:
    """Of a store of texts."""
    return Stores.key_value_store_builder(Stores.persistent_key_value_store(name), pa.string(), pa.string())


def lists_builder(name: str) -> StoreBuilder[Any]:
    """Of the store in which a processor keeps all that it has forwarded for a key, by window."""
    windows = timedelta(milliseconds=_WINDOW_MS)
    supplier = Stores.persistent_timestamped_window_store(name, _KEPT, windows, retain_duplicates=True)
    return Stores.timestamped_window_store_builder(supplier, pa.string(), pa.string())


class _Kept:
    """The stores of a processor.

    In one it keeps what it has forwarded last for a key, and tells it with the next; of a table's store it tells what
    it has, and may put there what it forwards; of global and read-only ones it tells what they have. Then there are
    stores of all kinds: `tests.differential.own_stores`.
    """

    def __init__(self, step: Step, context: ProcessorContext) -> None:
        def store(which: str) -> Any:
            return context.get_state_store(step[which]) if which in step else None

        self._of_own = step.get("own", {})
        self._own = context.get_state_store(self._of_own["name"]) if self._of_own else None
        self._writes = step.get("writes", False)
        self._store, self._table, self._lists = map(store, ("uses", "table", "lists"))
        self._read = [store(which) for which in ("global", "read_only") if which in step]

    def told(self, key: Any, value: str | None, timestamp: int) -> str | None:
        """A value, and what stores have told of the key."""
        if self._store is not None:
            name = _text(key)
            value = functions.joined(self._store.get(name), value)
            self._store.put(name, value)
        if self._table is not None and key is not None:
            found = self._table.get(key)
            value = functions.joined(None if found is None else found.value, value)
            if self._writes:
                self._table.put(key, ValueAndTimestamp.make(value, timestamp))
        if self._lists is not None:
            name = _text(key)
            self._lists.put(name, ValueAndTimestamp.make(value, timestamp), timestamp - timestamp % _WINDOW_MS)
            found = [f"{of}@{at}" for _, (of, at) in self._lists.fetch(name, 0, timestamp)]
            value = functions.joined(",".join(found), value)
        if self._own is not None:
            value = functions.joined(told(self._of_own, self._own, _text(key), value, timestamp), value)
        for read in self._read:
            value = functions.joined(read.get(functions.text(key)), value)
        return value


def _forward(step: Step, kept: _Kept, context: ProcessorContext, record: FixedKeyRecord) -> None:
    for number, child in enumerate(step["forwards"]):
        if number and "fails" in step:
            functions.fail_for_some(record.value)
        value = kept.told(record.key, functions.suffixed(record.value, f"p{number}"), record.timestamp)
        context.forward(record.with_value(value), child)


class Telling(Processor):
    """Forwards each record several times: to one child, to another, or (None) to all; and one more when it is called.

    Args:
        step: Says to which children, how often it is called, and which stores it uses.
    """

    def __init__(self, step: Step) -> None:
        self._step = step

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._kept = _Kept(self._step, context)
        if "tick" in self._step:
            clocks = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME
            clock = clocks[self._step.get("by_wall_clock", False)]
            start = {"start_time": self._step["start"]} if "start" in self._step else {}
            context.schedule(timedelta(milliseconds=self._step["tick"]), clock, self._tick, **start)

    def _tick(self, timestamp_ms: int) -> None:
        first, second = functions.told_keys()
        self._tell(first, f"t{timestamp_ms}", timestamp_ms)
        if "fails" in self._step:
            functions.fail_for_some(f"t{timestamp_ms}")
            self._tell(second, f"u{timestamp_ms}", timestamp_ms)

    def _tell(self, key: Any, value: str, timestamp_ms: int) -> None:
        self._context.forward(Record(key, self._kept.told(key, value, timestamp_ms), timestamp_ms))

    def process(self, record: Record) -> None:
        _forward(self._step, self._kept, self._context, record)


class TellingOfValues(FixedKeyProcessor):
    """The same under the keys of the records, and never called otherwise."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._kept = _Kept(self._step, context)

    def process(self, record: FixedKeyRecord) -> None:
        _forward(self._step, self._kept, self._context, record)


class Filling(Processor):
    """Puts each record into a store."""

    def __init__(self, store: str) -> None:
        self._name = store

    def init(self, context: ProcessorContext) -> None:
        self._store = context.get_state_store(self._name)

    def process(self, record: Record) -> None:
        if record.key is not None:
            self._store.put(functions.text(record.key), record.value)


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
