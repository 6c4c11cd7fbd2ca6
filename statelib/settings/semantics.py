"""What a job can choose that decides its answer."""

from __future__ import annotations

from typing import Literal

Semantics = Literal["kip", "kafka-4.3"]
"""``kip`` keeps what the KIPs promise, ``kafka-4.3`` does what the shipped library does (docs/semantics.md)."""

EndOfInput = Literal["hold", "seal"]
"""What happens to what is still open at the end of a run's input: ``hold``: it waits in the state for the next slice;
``seal``: it is let go, and the job is at its end (docs/decisions/0008-end-of-input.md)."""
