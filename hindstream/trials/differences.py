"""How a version differs from a job, in words: for a person who is asked whether to approve it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.console.differences import behind_sentences, interval_sentences, told_of_sinks
from hindstream.report.ledger_differences import ledger_sentences
from hindstream.runs import open_warehouse
from hindstream.trials.wanted import compared, sampled
from statelib.comparison.fields import Rules
from statelib.comparison.jobs import compare_jobs
from statelib.comparison.matches import Resources
from statelib.comparison.times import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.console.differences import Told
    from statelib.commits.versions.trials import Trial
    from statelib.comparison.matches import Way
    from statelib.settings.settings import Settings

_NO_RULES = Rules()


def differences_told(
    trial: Trial,
    settings: Settings,
    *,
    sinks: Sequence[str] = (),
    way: Way | None = None,
    rules: Rules = _NO_RULES,
    split_ms: int | None = None,
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
            split_ms=split_ms,
        )
    besides = [*interval_sentences(found.within), *ledger_sentences(found.ledgers)]
    if split_ms is not None:
        besides += behind_sentences(found.sinks, split_ms)
    return told_of_sinks(found.sinks, besides)
