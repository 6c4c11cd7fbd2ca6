"""Who reads whom, in sentences: which job's readers read a fork."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.versions.promotion import served_by, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.storage import Storage


def serving_sentences(warehouse: Storage, *jobs: str) -> Iterator[str]:
    """One for each of the jobs whose readers read another, and for each whose readers read one of the jobs.

    Raises:
        CorruptedDataError: A document is damaged.
    """
    told = dict.fromkeys(jobs) | dict.fromkeys(over for job in jobs for over in served_by(warehouse, job))
    for over in told:
        if (by := serving(warehouse, over)) != over:
            yield f"Readers of {over} read {by}."
