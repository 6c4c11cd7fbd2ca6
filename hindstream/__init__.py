"""Replays historical Kafka topics through Kafka-Streams-grade state on Spark.

All that a job is made of is here: `StreamsBuilder` and its streams and tables, `Job`, stores, windows, serdes,
`open_state` and errors; `run` and `backfill`, which replay it from Python, and `read`, which reads a sink at a commit;
`contract`, which makes expectations of a data contract.
Beside it:

- `hindstream.testing`: a topology tried record by record, without Spark;
- `hindstream.airflow`: DAGs of jobs;
- `hindstream.spark`: the phases of a run as functions, frames as topics, state as frames;
- `hindstream.kafka`: topics of a Kafka cluster, hand-over and take-over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import statelib
from hindstream.lazy import offers

__all__ = ["BackfillResult", "RunResult", "backfill", "contract", "read", "run"]
__all__ += statelib.__all__
__all__.sort()

if TYPE_CHECKING:
    from hindstream.contracts.contract import contract
    from hindstream.interactive.read import read
    from hindstream.interactive.result import BackfillResult, RunResult
    from hindstream.interactive.run import backfill, run
    from statelib import *  # noqa: F403

    __version__: str
else:
    _find, _ = offers(
        __name__,
        {
            "BackfillResult": "hindstream.interactive.result:BackfillResult",
            "RunResult": "hindstream.interactive.result:RunResult",
            "backfill": "hindstream.interactive.run:backfill",
            "contract": "hindstream.contracts.contract:contract",
            "read": "hindstream.interactive.read:read",
            "run": "hindstream.interactive.run:run",
        },
    )

    def __getattr__(name: str) -> object:
        """Loads a name where it is first used."""
        if name == "__version__":
            import importlib.metadata  # noqa: PLC0415 - 10 ms, which no other name waits for

            return importlib.metadata.version(__name__)
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(statelib, name) if name in statelib.__all__ else _find(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "__version__"})
