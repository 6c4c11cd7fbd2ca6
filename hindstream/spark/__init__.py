"""The phases of a run as functions, files and frames that become topics, and state as frames.

Begin with `phases`, whose `pipeline` runs a slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.lazy import offers

if TYPE_CHECKING:
    from hindstream.spark.frames.archive_frame import archive_frame
    from hindstream.spark.frames.state_source import register_state_source
    from hindstream.spark.lake.ingest import ingest
    from hindstream.spark.phases.audit import run as audit
    from hindstream.spark.phases.commit import run as commit
    from hindstream.spark.phases.maintain import run as maintain
    from hindstream.spark.phases.pipeline import SliceResult, run_slice
    from hindstream.spark.phases.plan import run as plan
    from hindstream.spark.phases.publish import run as publish
    from hindstream.spark.phases.replay import run as replay
    from hindstream.spark.phases.report import run as report
    from hindstream.spark.session.session import spark_session

_PHASES = ("audit", "commit", "maintain", "plan", "publish", "replay", "report")

__all__ = [
    "SliceResult",
    "archive_frame",
    "audit",
    "commit",
    "ingest",
    "maintain",
    "plan",
    "publish",
    "register_state_source",
    "replay",
    "report",
    "run_slice",
    "spark_session",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = offers(
        __name__,
        {
            "SliceResult": "hindstream.spark.phases.pipeline:SliceResult",
            "archive_frame": "hindstream.spark.frames.archive_frame:archive_frame",
            "ingest": "hindstream.spark.lake.ingest:ingest",
            "register_state_source": "hindstream.spark.frames.state_source:register_state_source",
            "run_slice": "hindstream.spark.phases.pipeline:run_slice",
            "spark_session": "hindstream.spark.session.session:spark_session",
            **{phase: f"hindstream.spark.phases.{phase}:run" for phase in _PHASES},
        },
    )
