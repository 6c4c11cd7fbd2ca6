"""The runs on which the state of a commit rests: those of its job, and of the jobs that this was forked from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import CommitLog, rolled_back
from statelib.commits.standing import standing_commit
from statelib.storage.transfers import look_ahead

if TYPE_CHECKING:
    from statelib.documents.manifests import Commit
    from statelib.storage import Storage


def lineage(warehouse: Storage, job: str, commit: int | None = None) -> tuple[Commit, ...]:
    """The commits on which a commit rests, oldest first, itself included; None: on which the newest rests.

    Those of the jobs that were forked come first, up to where they were. What only says that state goes on from another
    commit is left out: rollbacks, what these took back, and the first commits of forks.

    Raises:
        ConfigurationError: There is no such commit, or it has been rolled back since, or that which a fork stands on.
        CorruptedDataError: The document of a commit is damaged.
    """
    number = standing_commit(warehouse, job, commit).commit
    log = CommitLog(warehouse, job)
    commits = list(look_ahead(log.read, range(1, number + 1), warehouse.requests_at_once))
    gone, base = rolled_back(commits), commits[0].forked_from
    own = tuple(one for one in commits if one.commit not in gone and one.rolled_back_to is None)
    return own if base is None else (*lineage(warehouse, base.job, base.commit), *own[1:])
