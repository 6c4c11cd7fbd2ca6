"""A topic's Delta log: opened, and believed only as far as it says what was written.

Delta has no checksums: a flipped bit in an entry or a checkpoint of the log may be another offset. So what a reader of
topics takes from the log is covered by application transactions, which entries and checkpoints carry alike, and of
which a reader finds the newest without a look at the others::

    hindstream.digest.1          Delta version << 32 | digest of the table in that version, 32 bits; with each commit
    hindstream.check.1/<app id>  digest of the app id and its version, 63 bits; with each commit of that application

A digest is the beginning of the SHA-256 of a JSON list, with sorted keys and no white space: the topic's name, its
partition columns, its schema and `FileIndex.digest`; the app id and the version. It is of what was understood, not of
how that was written, so damage to what nobody reads is none.

Other programs may add to the table. Their commits carry no digest, and what they say is believed. A commit of
Hindstream that lost its end must not pass for one of theirs, so it says in its first line (`DIGEST`) what it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError

from statelib.errors.kinds import ConfigurationError, CorruptedDataError, HindstreamError, InputError
from statelib.storage import Storage, reason_without_secrets
from statelib.storage.errors import mapped_errors, store_meaning
from statelib.storage.local_files import make_directories, sync_file
from statelib.topics.delta.file_index import FileIndex
from statelib.topics.delta.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from statelib.topics.files import ArchiveFile

_COLUMNS_WITH_STATISTICS = "delta.dataSkippingNumIndexedCols"

STATISTICS = {_COLUMNS_WITH_STATISTICS: "2"}
"""Part of a table's configuration: statistics are of the first two columns, offset and timestamp."""

DIGEST = "hindstream.digest.1"
_CHECK = "hindstream.check.1/"

_DELETION_VECTORS = "deletionVectors"
_COLUMN_MAPPING = "delta.columnMapping.mode"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"

_LOG = "_delta_log"
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint.*\.parquet")
_ENTRY = re.compile(r"_delta_log/(\d{20})\.json")
_STORE_FAULT = re.compile(
    r"object.store|Generic (S3|GCS|MicrosoftAzure|HTTP|LocalFileSystem)|os error|onnection|timed out"
)
_OF_KERNEL = re.compile(r":? ?(ParsedLogPath|LogSegment) \{.*", re.DOTALL)
"""Its own notes on a file, of hundreds of characters."""


class ArchiveNotFoundError(ConfigurationError):
    """There is no table at the address."""


@dataclass(frozen=True)
class LoadedVersion:
    """A version of a table, as it was committed.

    Attributes:
        table: As delta-rs sees it.
        files: Its files, or why they are not those of a topic archive.
        transactions: What applications committed last.
    """

    table: DeltaTable
    files: FileIndex | InputError
    transactions: Transactions


@dataclass(frozen=True)
class DeltaLog:
    """The log of one topic.

    Attributes:
        uri: The table's root.
        options: Of the store.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)

    def load(self, version: int | None) -> LoadedVersion:
        """A version of the table (None: the newest one), as it was committed.

        Raises:
            ArchiveNotFoundError: There is no table.
            ConfigurationError: It lacks the version.
            CorruptedDataError: The log is damaged; the error names the entry.
            RetryableError: The store did not answer.
        """
        try:
            with _no_panic():
                loaded, is_damaged = self._checked(self._open(version))
        except TableNotFoundError:
            step = "check the warehouse's address, or archive the topic first"
            raise ArchiveNotFoundError("there is no topic archive", file=self.uri, next_step=step) from None
        except (DeltaError, pa.ArrowException, OSError, ValueError) as error:
            if version is not None and version > self.load(None).table.version():
                step = "use the newest version, or restore the archive's log"
                what = f"the topic archive has no version {version}"
                raise ConfigurationError(what, file=self.uri, next_step=step) from None
            raise self._failed("open the topic archive", version, error) from None
        if is_damaged:
            what = "does not say of the topic and its files what was committed"
            raise self._damage(what, loaded.table.version(), lambda table: self._checked(table)[1])
        return loaded

    def make_directory(self) -> None:
        """Makes the log's directory, on the disk, where it is a local one."""
        storage = Storage(self.uri, self.options)
        local = storage.local_path("_delta_log")
        if local is not None:
            with mapped_errors("create", storage.uri("_delta_log"), self.options):
                make_directories(local)

    def sync(self, version: int) -> None:
        """Brings a version's entry, and a checkpoint of it, to the local disk, which delta-rs leaves to chance.

        Raises:
            RetryableError: The disk is full, or fails.
        """
        storage = Storage(self.uri, self.options)
        folder = storage.local_path("_delta_log")
        if folder is None:
            return
        with mapped_errors("write", storage.uri("_delta_log"), self.options):
            for path in (*folder.glob(f"{version:020d}.*"), folder / "_last_checkpoint"):
                sync_file(path)
        storage.sync("_delta_log")

    def clean_up(self) -> None:
        """Removes entries that have expired and that a checkpoint replaces: only when that is on the disk.

        It lists the whole log, for naught between two checkpoints. What it fails to do the next one does.
        """
        with suppress(DeltaError, OSError), _no_panic():
            self._open(None).cleanup_metadata()

    def last_transaction(self, loaded: LoadedVersion, app_id: str) -> int | None:
        """The version that an application committed last; None: none.

        Raises:
            CorruptedDataError: It is not what was written.
            RetryableError: The store did not answer.
        """

        def found(transactions: Transactions) -> tuple[int | None, bool]:
            last, check = transactions.last(app_id), transactions.last(_CHECK + app_id)
            return last, check is not None and check != _digest(app_id, last) >> 1

        version = loaded.table.version()
        try:
            with _no_panic():
                last, is_damaged = found(loaded.transactions)
        except (DeltaError, OSError) as error:
            raise self._failed("read the topic archive's log", version, error) from None
        if is_damaged:
            what = f"does not say which commit of {app_id} was the last"
            raise self._damage(what, version, lambda table: found(self._transactions(table))[1])
        return last

    def store_error(self, verb: str, error: Exception) -> HindstreamError:
        """The error of a store that did not do what was asked for."""
        kind, next_step = store_meaning(error)
        return kind(f"cannot {verb}: {reason_without_secrets(error, self.options)}", file=self.uri, next_step=next_step)

    def _open(self, version: int | None) -> DeltaTable:
        return DeltaTable(self.uri, version=version, storage_options=dict(self.options))

    def _transactions(self, table: DeltaTable) -> Transactions:
        return Transactions(table, Storage(self.uri, self.options))

    def _checked(self, table: DeltaTable) -> tuple[LoadedVersion, bool]:
        """What the log says of a version, and whether that is not what was written."""
        topic = table.metadata().name or self.uri
        try:
            self._check_features(table, topic)
            actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True))  # pa.table imports pandas
            files: FileIndex | InputError = FileIndex(actions.read_all(), topic=topic, uri=self.uri)
        except InputError as error:
            files = error
        loaded = LoadedVersion(table, files, self._transactions(table))
        recorded = loaded.transactions.last(DIGEST)
        if recorded is None or recorded >> 32 != table.version():
            return loaded, self._has_lost_its_digest(table.version())
        return loaded, isinstance(files, InputError) or recorded != _table_digest(
            table, table.version(), files.digest()
        )

    def _check_features(self, table: DeltaTable, topic: str) -> None:
        """Checks that files hold what the table holds, by its names.

        Records that are only marked as deleted would come back, and fields that only the log has renamed would be null.

        Raises:
            InputError: Another program has marked some, or renamed some.
        """
        if table.metadata().configuration.get(_COLUMN_MAPPING, "none") != "none":
            renamed = [f"{physical} to {name}" for name, physical in _mapped(json.loads(table.schema().to_json()))]
            if renamed:
                raise InputError(
                    f"another program has renamed fields of the topic, but not in its files: {', '.join(renamed)}",
                    topic=topic,
                    file=self.uri,
                    next_step=f"restore the archive's former version: hindstream topic {topic}"
                    " (docs/runbooks/damaged-data.md)",
                )
        if _DELETION_VECTORS not in (table.protocol().reader_features or ()):
            return
        try:
            marked = pa.table(table.deletion_vectors()).num_rows
        except DeltaError:  # it understands that there are some
            marked = 1
        if marked:
            raise InputError(
                "another program has deleted records of the topic by deletion vectors, which leave them in the files",
                topic=topic,
                file=self.uri,
                next_step=f"take them out of the files, in Spark: REORG TABLE delta.`{self.uri}` APPLY (PURGE); or"
                f" restore the archive's former version: hindstream topic {topic} (docs/runbooks/damaged-data.md)",
            )

    def _has_lost_its_digest(self, version: int) -> bool:
        """Whether an entry that has none is one of Hindstream's that had, and not an older or another program's."""
        entry = Storage(self.uri, self.options).get_if_present(f"_delta_log/{version:020d}.json")
        if entry is None:  # the log has been cleaned up to a checkpoint
            return False
        return not entry.strip() or DIGEST.encode() in entry.split(b"\n", 1)[0]

    def _failed(self, verb: str, version: int | None, error: Exception) -> HindstreamError:
        if isinstance(error, OSError) or _STORE_FAULT.search(str(error)):
            return self.store_error(verb, error)
        return self._damage(
            f"cannot be read: {reason_without_secrets(error, self.options)}", version, self._is_unreadable
        )

    def _is_unreadable(self, table: DeltaTable) -> bool:
        self._checked(table)  # raises what it raised in the version that is damaged
        return False

    def _damage(self, what: str, version: int | None, is_damaged: Callable[[DeltaTable], bool]) -> CorruptedDataError:
        """An error that names the file which brought the damage: looks at the versions before for it."""
        storage = Storage(self.uri, self.options)
        paths = [entry.path for entry in storage.list("_delta_log")]
        entries = {int(match[1]): path for path in paths if (match := _ENTRY.fullmatch(path))}
        checkpoints = {int(match[1]): path for path in paths if (match := _CHECKPOINT.fullmatch(path))}
        last = max(entries, default=0) if version is None else version
        base = max((n for n in checkpoints if n <= last), default=0)
        path = checkpoints.get(base) or entries.get(base, "_delta_log")
        topic = topic_of(self.uri)
        step = (
            f"restore the file from a copy of the warehouse, or the archive's former version: hindstream topic {topic}"
        )
        what = f"the topic's Delta log is damaged: it {_OF_KERNEL.sub('', what)}"
        missing = [n for n in range(base + 1 if base in checkpoints else base, last) if n not in entries]
        if missing:
            gone = f"{_LOG}/{missing[0]:020d}.json"
            step = "restore that file from a copy of the warehouse (docs/runbooks/damaged-data.md)"
            return CorruptedDataError(
                f"{what}; an entry is missing", topic=topic, file=storage.uri(gone), next_step=step
            )
        if "_last_checkpoint" in what and f"{_LOG}/_last_checkpoint" in paths:
            step = "delete that file: it names a checkpoint that is gone, the log's entries are there"
            hint = storage.uri(f"{_LOG}/_last_checkpoint")
            return CorruptedDataError(what, topic=topic, file=hint, next_step=step)
        for n in range(last - 1, base - 1, -1):
            try:
                with _no_panic():
                    table = self._open(n)
                    if is_damaged(table) or _hides_statistics(table):
                        continue
            except (DeltaError, pa.ArrowException, OSError, ValueError):
                continue
            path = entries.get(n + 1, "_delta_log")
            break
        return CorruptedDataError(what, topic=topic, file=storage.uri(path), next_step=step)


def topic_of(uri: str) -> str:
    """The name of the topic whose table is at an address, where the table does not say it: the address's last part."""
    return uri.rstrip("/").rsplit("/", 1)[-1]


def created(topic: str, partition_columns: Sequence[str], schema_json: str) -> CommitProperties:
    """What the commit that makes an empty table says of it; it is that one or none."""
    digest = _digest(topic, list(partition_columns), json.loads(schema_json), FileIndex.digest_of_none()) >> 32
    return CommitProperties({DIGEST: ""}, max_commit_retries=0, app_transactions=[Transaction(DIGEST, digest)])


def changed(
    table: DeltaTable,
    files: FileIndex,
    more: Sequence[ArchiveFile],
    gone: Collection[str],
    transactions: Sequence[tuple[str, int]],
    schema_json: str | None = None,
) -> CommitProperties:
    """What the commit after ``table`` says; it is that one or none.

    Args:
        table: A version.
        files: Its files.
        more: Those that are added.
        gone: Paths of those that are removed.
        transactions: Applications and their versions.
        schema_json: The table's schema after it; None: as before.
    """
    version = table.version() + 1
    said = []
    for app_id, app_version in transactions:
        said += [Transaction(app_id, app_version), Transaction(_CHECK + app_id, _digest(app_id, app_version) >> 1)]
    digest = _table_digest(table, version, files.digest(more, gone), schema_json)
    said.append(Transaction(DIGEST, digest))  # whatever is cut off: it
    return CommitProperties({DIGEST: ""}, max_commit_retries=0, app_transactions=said)


def _mapped(schema: Any) -> Iterator[tuple[str, str]]:
    """The fields, at any depth, whose columns in files have other names: both names (Delta's column mapping)."""
    if isinstance(schema, list):
        for inner in schema:
            yield from _mapped(inner)
    elif isinstance(schema, dict):
        physical = (schema.get("metadata") or {}).get(_PHYSICAL_NAME)
        if physical is not None and physical != schema["name"]:
            yield schema["name"], physical
        for inner in ("fields", "type", "elementType", "keyType", "valueType"):
            yield from _mapped(schema.get(inner))


def _hides_statistics(table: DeltaTable) -> bool:
    """Whether its configuration, which no digest covers, makes a log look damaged from the first files on."""
    return table.metadata().configuration.get(_COLUMNS_WITH_STATISTICS) in {"0", "1"}


def _table_digest(table: DeltaTable, version: int, files_digest: str, schema_json: str | None = None) -> int:
    metadata, schema = table.metadata(), json.loads(schema_json or table.schema().to_json())
    return version << 32 | _digest(metadata.name, metadata.partition_columns, schema, files_digest) >> 32


def _digest(*content: object) -> int:
    """64 bits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


@contextmanager
def _no_panic() -> Iterator[None]:
    """Turns a panic of delta-rs, which a damaged checkpoint may cause, into an error of it."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # it can be imported from nowhere
            raise
        raise DeltaError(str(error)) from None
