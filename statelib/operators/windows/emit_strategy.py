"""When windowed aggregations forward results: `EmitStrategy` (KIP-825)."""

from __future__ import annotations

from dataclasses import dataclass

from statelib.calls import KafkasNames, arguments_checked


@arguments_checked
@dataclass(frozen=True, slots=True)
class EmitStrategy(KafkasNames):
    """When a windowed aggregation forwards results (Kafka's ``EmitStrategy``, KIP-825).

    Attributes:
        final: Whether it forwards final results alone.
    """

    final: bool = False

    @classmethod
    def on_window_update(cls) -> EmitStrategy:
        """With each record that a window takes, which is the default."""
        return cls()

    @classmethod
    def on_window_close(cls) -> EmitStrategy:
        """Once for each window, when it closes."""
        return cls(final=True)
