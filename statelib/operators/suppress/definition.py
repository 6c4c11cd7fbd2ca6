"""What `suppress` may hold back, for how long and in how much memory (KIP-328, "New Suppress Operator").

A buffer is *strict* if it never emits early, and *eager* if it may. Each has its own type, because only a strict
buffer can promise one final result per window::

    Suppressed.until_window_closes(BufferConfig.unbounded())
    Suppressed.until_window_closes(BufferConfig.max_bytes(5_000_000).shut_down_when_full())
    Suppressed.until_window_closes(BufferConfig.max_bytes(5_000_000).spill_to_disk_when_full())
    Suppressed.until_time_limit(timedelta(seconds=30), BufferConfig.max_records(1000))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from statelib.calls import KafkasNames, arguments_checked
from statelib.calls.names import check_given_name
from statelib.errors.kinds import ConfigurationError
from statelib.settings.durations import milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from statelib.operators.windows.definition import AnyWindows
    from statelib.settings.semantics import Semantics

Clock = Literal["first", "record", "last"]
"""What a time limit counts from: ``first``, the timestamp at which the key was first buffered (as shipped: updates do
not restart the timer); ``record``, the timestamp of the key's latest record (as in the KIP's tables), earlier than
before if that is out of order; ``last``, the largest timestamp of the key's records so far (the KIP's "reset the
timeout", which it compares with sessions): the key leaves once it has been quiet for the limit."""

BUFFER_TIME_BYTES = 8
"""What Kafka counts for the buffer time, beside a key."""
RECORD_CONTEXT_BYTES = 20
"""What Kafka counts for a record's timestamp, offset and partition."""


@arguments_checked
@dataclass(frozen=True, slots=True)
class BufferConfig(KafkasNames):
    """How much a buffer may hold (KIP-328, ``BufferConfig``); None: any amount.

    Made by `unbounded`, `max_records` or `max_bytes`. Records are the keys in the buffer. Bytes are those of the
    serialised keys and values; with ``semantics="kafka-4.3"`` prior values and the records' context count too, as in
    Kafka.
    """

    record_limit: int | None = None
    byte_limit: int | None = None

    @staticmethod
    def unbounded() -> StrictBufferConfig:
        """No bound: what exceeds the task's memory goes to disk."""
        return StrictBufferConfig()

    @staticmethod
    def max_records(limit: int) -> EagerBufferConfig:
        """At most ``limit`` keys; beyond that it emits the oldest early."""
        return EagerBufferConfig().with_max_records(limit)

    @staticmethod
    def max_bytes(limit: int) -> EagerBufferConfig:
        """At most ``limit`` bytes; beyond that it emits the oldest early."""
        return EagerBufferConfig().with_max_bytes(limit)

    def with_max_records(self, limit: int) -> Self:
        """The same with at most ``limit`` keys."""
        return replace(self, record_limit=_bound(limit, "max_records"))

    def with_max_bytes(self, limit: int) -> Self:
        """The same with at most ``limit`` bytes."""
        return replace(self, byte_limit=_bound(limit, "max_bytes"))

    def with_no_bound(self) -> StrictBufferConfig:
        """Without bounds, which makes it strict."""
        return StrictBufferConfig()

    def shut_down_when_full(self) -> StrictBufferConfig:
        """The same bounds; the run fails if one is exceeded."""
        return StrictBufferConfig(self.record_limit, self.byte_limit)

    def spill_to_disk_when_full(self) -> StrictBufferConfig:
        """The same bounds for memory only; what exceeds them waits in RocksDB and is emitted when its time comes.

        Results are those of `unbounded`, whatever the bounds. The bound on bytes covers all the memory that the buffer
        uses between two batches, not only keys and values. (KIP-328 describes this; no release of Kafka has it.)
        """
        return StrictBufferConfig(self.record_limit, self.byte_limit, spills=True)

    def emit_early_when_full(self) -> EagerBufferConfig:
        """The same bounds; the oldest records are emitted early if one is exceeded."""
        return EagerBufferConfig(self.record_limit, self.byte_limit)

    def with_logging_enabled(self, config: Mapping[str, str] | None = None) -> Self:
        """Changes nothing: a replay writes no changelog, its state is in checkpoints."""
        del config
        return self

    def with_logging_disabled(self) -> Self:
        """Changes nothing: a replay writes no changelog, its state is in checkpoints."""
        return self

    @property
    def is_bounded(self) -> bool:
        """Whether there is any bound."""
        return self.record_limit is not None or self.byte_limit is not None


@arguments_checked
@dataclass(frozen=True, slots=True)
class StrictBufferConfig(BufferConfig):
    """Never emits before the time is up (KIP-328, ``StrictBufferConfig``).

    Attributes:
        spills: What happens if a bound is exceeded. True: the buffer continues on disk; False: the run fails.
    """

    spills: bool = False

    def describe(self) -> Mapping[str, object]:
        """What decides the results, as plain data: no bounds, so that a job can have others when it goes on."""
        return {"emits_early": False}


@arguments_checked
@dataclass(frozen=True, slots=True)
class EagerBufferConfig(BufferConfig):
    """Emits the oldest records early if a bound is exceeded (KIP-328, ``EagerBufferConfig``)."""

    def describe(self) -> Mapping[str, object]:
        """What decides the results, as plain data."""
        return {"emits_early": True, "max_records": self.record_limit, "max_bytes": self.byte_limit}


AnyBufferConfig = StrictBufferConfig | EagerBufferConfig
"""What the builders of `BufferConfig` make."""


@arguments_checked
@dataclass(frozen=True, slots=True)
class Suppressed(KafkasNames):
    """What to hold back (KIP-328, ``Suppressed``). Made by `until_window_closes` or `until_time_limit`.

    Attributes:
        buffer: Bounds, and what happens beyond them.
        time_limit_ms: How long to wait for more updates of a key; None: until the window closes.
        clock: What the time limit counts from.
        name: Name of the node; None: generated.
    """

    buffer: AnyBufferConfig
    time_limit_ms: int | None = None
    clock: Clock = "first"
    name: str | None = None

    def __post_init__(self) -> None:
        """Checks the name, as Kafka does (``Named.validate``)."""
        check_given_name(self.name, "a node")

    @classmethod
    def until_window_closes(cls, buffer: StrictBufferConfig) -> Suppressed:
        """Only the final result of each key and window (KIP-328, ``untilWindowCloses``).

        Raises:
            ConfigurationError: The buffer is not strict: a result that is emitted early is not final.
        """
        return cls(buffer)

    @classmethod
    def until_time_limit(
        cls, time_to_wait_for_more_events: timedelta, buffer: AnyBufferConfig, *, clock: Clock = "first"
    ) -> Suppressed:
        """At most one update per key in this time (KIP-328, ``untilTimeLimit``).

        A later update replaces the waiting one and, with ``clock="first"``, does not restart the timer. A time of zero
        disables the suppression: every update is forwarded at once.

        Raises:
            ConfigurationError: The time is negative, or the clock or buffer is not a valid one.
        """
        return cls(buffer, milliseconds(time_to_wait_for_more_events, "time_to_wait_for_more_events"), clock)

    def with_name(self, name: str) -> Suppressed:
        """A copy whose node has this name."""
        return replace(self, name=name)

    @property
    def final_results(self) -> bool:
        """Whether it waits until windows close."""
        return self.time_limit_ms is None

    def describe(self) -> Mapping[str, object]:
        """As plain data, without the name."""
        return {"time_limit_ms": self.time_limit_ms, "clock": self.clock, "buffer": self.buffer.describe()}


def _bound(limit: int, setting: str) -> int:
    if limit < 0:
        step = "give 0 or more, or use BufferConfig.unbounded()"
        raise ConfigurationError(f"a bound cannot be negative: {limit}", setting=setting, next_step=step)
    return limit


def wait_ms(time_limit_ms: int | None, windows: AnyWindows | None, held_ms: int, semantics: Semantics) -> int:
    """How long after its buffer time a key leaves.

    Args:
        time_limit_ms: None: windows wait for their final result.
        windows: Of the table.
        held_ms: How long time limits above hold an update back. Until then one may still come for a window that takes
            no more records; the shipped library does not wait for it.
        semantics: Whether a result that is forwarded as final never changes.
    """
    if time_limit_ms is not None:
        return time_limit_ms
    final_ms = windows.final_after_ms(semantics) if windows else 0
    return final_ms if semantics != "kip" else max(final_ms, held_ms)
