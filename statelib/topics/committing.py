"""Commits to a topic's table: each is one Delta commit on the newest version, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import PostCommitHookProperties, RemoveAction

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.topics.actions import FileToCommitError
from statelib.topics.delta.log import changed
from statelib.topics.files import not_as_written
from statelib.topics.version import TopicVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalake import DeltaTable, TableFeatures
    from deltalake import Schema as DeltaSchema
    from deltalake.transaction import AddAction

    from statelib.topics.files import ArchiveFile

LOG_CHECKPOINT_INTERVAL = 10  # commits; what comes after the last checkpoint is read one by one
INTERVAL_KEY = "delta.checkpointInterval"
_COMMIT_TRIES = 50


class CommittableVersion(TopicVersion):
    """A version of a topic archive after which another one may be committed."""

    def _transact(
        self,
        actions: Callable[[Self], list[AddAction | RemoveAction]],
        transactions: Sequence[tuple[str, int]],
        files: Sequence[ArchiveFile] = (),
        is_done: Callable[[Self], bool] | None = None,
        widened: Callable[[Self], DeltaSchema] | None = None,
    ) -> Self | None:
        """Commits what ``actions`` gives for the newest version, unless it ``is_done``: has the first transaction.

        ``files`` are those that are added; ``widened`` gives the table's schema from then on.

        Returns:
            The newest version, where that has the transaction already; None: this call has committed.
        """
        lost: Exception | None = None
        newest = self
        is_done = is_done or (lambda archive: archive.has_committed(*transactions[0]))
        for _ in range(_COMMIT_TRIES):
            if is_done(newest):
                newest.sync()
                return newest
            try:
                wanted = actions(newest)
            except (CorruptedDataError, ConfigurationError):
                looked_at = newest.version
                newest = newest.refresh()
                if newest.version == looked_at:
                    raise
                continue  # somebody else may have done it, and what was to be added may have been merged since
            gone = [action.path for action in wanted if isinstance(action, RemoveAction)]
            table, held = newest._loaded.table, newest._files  # noqa: SLF001 - of this class
            schema = table.schema() if widened is None else widened(newest)
            try:
                table.create_write_transaction(
                    wanted,
                    # Only what overwrites may bring another schema. It takes the place of the files of no partition.
                    "append" if widened is None else "overwrite",
                    schema,
                    partition_by=["partition"],
                    partition_filters=None if widened is None else [("partition", "=", "-1")],
                    commit_properties=changed(table, held, files, gone, transactions, schema.to_json()),
                    post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
                )
            except CommitFailedError as error:
                lost = error
                newest = newest.refresh()
            except (DeltaError, OSError) as error:
                lost = error
                newest = newest.refresh()
                if not is_done(newest):
                    break
            else:
                self._log.sync(table.version() + 1)
                if _has_checkpoint(table, table.version() + 1):
                    self._log.clean_up()
                return None
        raise self._log.store_error("commit to the topic archive", lost or RuntimeError())

    def _add_feature(self, feature: TableFeatures, name: str) -> None:
        """Commits that the table uses a feature of Delta's, unless it does."""
        newest, lost = self, None
        for _ in range(_COMMIT_TRIES):
            table, held = newest._loaded.table, newest._files
            if name in (table.protocol().writer_features or ()):
                newest.sync()
                return
            try:
                table.alter.add_feature(
                    feature,
                    allow_protocol_versions_increase=True,
                    commit_properties=changed(table, held, [], [], []),
                    post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
                )
            except (DeltaError, OSError) as error:
                lost = error
            newest = newest.refresh()
        raise self._log.store_error("commit to the topic archive", lost or RuntimeError())

    def _holds(self, files: Sequence[ArchiveFile]) -> bool:
        """Whether these very files, of which there is one at least, are part of the topic."""
        return bool(files) and all(
            file.path in {held.path for held in self.files(file.partition, file.first_offset, file.last_offset + 1)}
            for file in files
        )

    def _check_present(self, files: Sequence[ArchiveFile]) -> None:
        for file in files:
            self._check_partition(file.partition)
        for file, size in not_as_written(self.storage, files):
            what = "a file to be committed is missing" if size is None else "a file to be committed has changed"
            step = "run the slice again: it writes its files anew"
            place = {"topic": self.topic, "partition": file.partition, "file": self.storage.uri(file.path)}
            raise FileToCommitError(what, **place, next_step=step)


def _has_checkpoint(table: DeltaTable, version: int) -> bool:
    """Whether delta-rs has made a checkpoint of the log with the commit of ``version``."""
    interval = int(table.metadata().configuration.get(INTERVAL_KEY, LOG_CHECKPOINT_INTERVAL))
    return (version + 1) % interval == 0  # it counts version 0
