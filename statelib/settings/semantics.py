"""What a job can choose that decides its answer."""

from __future__ import annotations

import re
from typing import Literal

Semantics = Literal["kip", "kafka-4.3", "kafka-4.4"]
"""``kip`` keeps what the KIPs promise, the others do what the library of that version does (docs/semantics.md)."""

Rules = Literal["kip", "kafka-4.3"]
"""The semantics that have rules of their own, by which stores are described; see `rules_of`."""


def rules_of(semantics: Semantics) -> Rules:
    """Whose rules decide: Kafka Streams 4.4 has changed none of 4.3 (docs/decisions/0091-kafka-4-4.md)."""
    return "kip" if semantics == "kip" else "kafka-4.3"


def semantics_of(kafka_version: str) -> Semantics:
    """Those that do what a version of Kafka Streams does, such as ``4.3.0``."""
    numbers = re.match(r"(\d+)\.(\d+)", kafka_version)
    return "kafka-4.4" if numbers and (int(numbers[1]), int(numbers[2])) >= (4, 4) else "kafka-4.3"


EndOfInput = Literal["hold", "seal"]
"""What happens to what is still open at the end of a run's input: ``hold``: it waits in the state for the next slice;
``seal``: it is let go, and the job is at its end (docs/decisions/0008-end-of-input.md)."""
