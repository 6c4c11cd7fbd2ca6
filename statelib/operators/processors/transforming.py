"""The processor of a table's transformer of values (Kafka's ``KTableTransformValues``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from statelib.errors.kinds import ConfigurationError
from statelib.operators.processors.definition import FixedKeyProcessor

if TYPE_CHECKING:
    from statelib.operators.processors.definition import (
        FixedKeyRecord,
        Headers,
        ProcessorContext,
        TransformerContext,
        ValueTransformerWithKey,
    )


class Transforming(FixedKeyProcessor):
    """Forwards each change with the value that a transformer makes of it.

    Args:
        transformer: That.
    """

    def __init__(self, transformer: ValueTransformerWithKey) -> None:
        self._transformer = transformer

    def init(self, context: ProcessorContext) -> None:
        """See `FixedKeyProcessor`."""
        super().init(context)
        self._seen = _OfTransformer(context)
        self._transformer.init(cast("TransformerContext", self._seen))

    def process(self, record: FixedKeyRecord) -> None:
        """See `FixedKeyProcessor`."""
        self._seen.record = record
        try:
            value = self._transformer.transform(record.key, record.value)
        finally:
            self._seen.record = None
        self.context.forward(record.with_value(value))


class _OfTransformer:
    """See `TransformerContext` (Kafka's ``ForwardingDisabledProcessorContext``)."""

    def __init__(self, context: ProcessorContext) -> None:
        self._context = context
        self.record: FixedKeyRecord | None = None
        """That which is transformed; a callback has none."""

    def timestamp(self) -> int:
        """See `TransformerContext`."""
        return self._context.current_stream_time_ms() if self.record is None else self.record.timestamp

    def headers(self) -> Headers:
        """See `TransformerContext`."""
        return () if self.record is None else self.record.headers

    def topic(self) -> str | None:
        """See `TransformerContext`."""
        return None if (metadata := self._context.record_metadata()) is None else metadata.topic

    def partition(self) -> int:
        """See `TransformerContext`."""
        return -1 if (metadata := self._context.record_metadata()) is None else metadata.partition

    def offset(self) -> int:
        """See `TransformerContext`."""
        return -1 if (metadata := self._context.record_metadata()) is None else metadata.offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def forward(self, record: FixedKeyRecord, child_name: str | None = None) -> None:
        """Refused."""
        del record, child_name
        raise ConfigurationError(
            "a transformer of values forwards nothing itself",
            next_step="return the new value, or use to_stream() and process_values()",
        )
