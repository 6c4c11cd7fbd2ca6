"""Outcomes of single tasks, kept as each of them ends: who goes on with a replay that was killed does only the rest.

They lie with what the run has staged, and go with it::

    jobs/<job>/staging/<run id>/_outcomes/<made from>/<task>.json

``<made from>`` is a digest of all that decides what a task makes, so that nobody takes up what was made from another
plan, by other code or with other settings. Of several attempts at a task the first that is kept counts, for all who
come later.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING

from statelib.commits.layout import JobLayout
from statelib.commits.stored_files import lost_files
from statelib.documents.manifests import KeptOutcome
from statelib.errors.fault_points import step
from statelib.errors.kinds import CorruptedDataError
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.documents.manifests import TaskOutcome
    from statelib.documents.plans import Plan
    from statelib.storage import Storage


def made_from(plan: Plan, deciding: Sequence[str]) -> str:
    """The digest of a plan, and of what else decides about what its tasks make."""
    facts = json.dumps([hashlib.sha256(plan.encode()).hexdigest(), *deciding])
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


class KeptOutcomes:
    """Those of one run.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        run_id: The run.
        made: As `made_from` gives it.
    """

    def __init__(self, warehouse: Storage, job: str, run_id: str, made: str) -> None:
        self._warehouse = warehouse
        self._job = job
        self._staging = JobLayout(job).staging(run_id)
        self._folder = f"{self._staging}/_outcomes/{made}"

    def read(self) -> dict[str, TaskOutcome]:
        """By task, what earlier tries at the run have done and all files of which are there."""
        staged = {entry.path: entry.size_bytes for entry in self._warehouse.list(self._staging)}
        kept = [path for path in staged if path.startswith(f"{self._folder}/")]
        found = in_parallel(self._read, kept, self._warehouse.requests_at_once)
        outcomes = [outcome for outcome in found if outcome is not None]
        whole = in_parallel(partial(self._is_whole, staged), outcomes, self._warehouse.requests_at_once)
        return {outcome.task_id: outcome for outcome, is_whole in zip(outcomes, whole, strict=True) if is_whole}

    def keep(self, outcome: TaskOutcome) -> TaskOutcome:
        """Keeps what a task has made, unless another attempt at it was quicker.

        Returns:
            The outcome that counts: this one or the other's.
        """
        path, document = f"{self._folder}/{outcome.task_id}.json", KeptOutcome(outcome=outcome).encode()
        step("keep.before-create")
        if not self._warehouse.put_if_absent(path, document):
            standing = self._read(path)
            if standing is not None and not lost_files(self._warehouse, self._job, [standing]):
                return standing
            self._warehouse.put(path, document)
        step("keep.created")
        return outcome

    def forget(self) -> None:
        """Has all tasks done again: a file that a task has made is damaged."""
        self._warehouse.delete([entry.path for entry in self._warehouse.list(self._folder)])

    def _read(self, path: str) -> TaskOutcome | None:
        """None: it is damaged or gone, and its task will be done again."""
        try:
            found = KeptOutcome.read_if_present(self._warehouse, path)
        except CorruptedDataError:
            return None
        return None if found is None else found.outcome

    def _is_whole(self, staged: Mapping[str, int], outcome: TaskOutcome) -> bool:
        history = outcome.history.repartitions if outcome.history is not None else ()
        sent = [file for files in (outcome.repartitions, *history) for file in files]
        if any(staged.get(file.path) != file.size_bytes for file in sent):
            return False
        return not lost_files(self._warehouse, self._job, [outcome])
