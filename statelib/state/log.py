"""Where a state store tells what is put into it (Kafka's ``ProcessorContext.logChange``)."""

from __future__ import annotations

from typing import Protocol


class StoreLog(Protocol):
    """Takes what Kafka's changelogging stores send to their changelogs."""

    def add(self, key: bytes, value: bytes | None, timestamp: int | None) -> None:
        """Takes one record; without ``timestamp`` (ms) that of the record that is being processed is meant."""
