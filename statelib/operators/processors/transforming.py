"""The processor of a table's transformer of values (Kafka's ``KTableTransformValues``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from statelib.errors.kinds import ConfigurationError
from statelib.operators.processors.definition import FixedKeyProcessor

if TYPE_CHECKING:
    from statelib.operators.processors.definition import FixedKeyRecord, ProcessorContext, ValueTransformerWithKey


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
        self._transformer.init(cast("ProcessorContext", _ForwardingDisabled(context)))

    def process(self, record: FixedKeyRecord) -> None:
        """See `FixedKeyProcessor`."""
        self.context.forward(record.with_value(self._transformer.transform(record.key, record.value)))


class _ForwardingDisabled:
    """What a transformer sees of its task (Kafka's ``ForwardingDisabledProcessorContext``)."""

    def __init__(self, context: ProcessorContext) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def forward(self, record: FixedKeyRecord, child_name: str | None = None) -> None:
        """Refused."""
        del record, child_name
        raise ConfigurationError(
            "a transformer of values forwards nothing itself",
            next_step="return the new value, or use to_stream() and process_values()",
        )
