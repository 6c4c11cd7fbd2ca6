"""How a version differs from a job, in words: for a person who is asked whether to approve it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.console.differences import field_text, interval_sentences, sink_name, sink_sentences
from hindstream.report.ledger_differences import ledger_sentences
from hindstream.runs import open_warehouse
from hindstream.trials.wanted import compared, sampled
from statelib.comparison.fields import Rules
from statelib.comparison.jobs import compare_jobs
from statelib.comparison.matches import Resources
from statelib.comparison.times import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.commits.versions.trials import Trial
    from statelib.comparison.matches import Way
    from statelib.settings.settings import Settings

_NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Told:
    """How a version differs from a job, in words.

    Attributes:
        is_empty: Whether it does not.
        subject: The first sentence.
        text: All of them.
    """

    is_empty: bool
    subject: str
    text: str


def differences_told(
    trial: Trial, settings: Settings, *, sinks: Sequence[str] = (), way: Way | None = None, rules: Rules = _NO_RULES
) -> Told:
    """Compares the job and the version that is tried; see `statelib.comparison.jobs.compare_jobs`.

    Raises:
        ConfigurationError: See there.
    """
    with tempfile.TemporaryDirectory(prefix="hindstream-diff-") as scratch:
        resources = Resources(Path(scratch))
        warehouse = open_warehouse(settings)
        found = compare_jobs(
            warehouse,
            *compared(trial),
            resources,
            sinks=sinks,
            way=way,
            rules=rules,
            examples=0,
            within=Interval(keys=sampled(trial)),
        )
    first, *others = [
        *sink_sentences(found.sinks),
        *interval_sentences(found.within),
        *ledger_sentences(found.ledgers),
    ]
    fields = [
        f"{sink_name(sink)}: {field_text(field)}" for sink in found.sinks.sinks for field in sink.difference.fields
    ]
    return Told(found.is_empty, first, "\n".join([first, *others, *fields]))
