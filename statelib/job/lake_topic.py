"""A topic that comes from files of a lake: where they are, and what of a row is a record's key, value and timestamp."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from statelib.calls import arguments_checked
from statelib.calls.names import check_name
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.job.user_code import load_attribute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.serdes import Serde
    from statelib.serdes.schema_source import SchemaSource

FileFormat = Literal["parquet", "csv", "json", "avro", "bytes"]
Layout = Literal["files", "connect", "aiven", "kcat"]
Envelope = Literal["rows", "debezium"]
ValueEncoding = Literal["base64", "none"]
TimeUnit = Literal["s", "ms", "us", "ns"]

DEFAULT_PARTITIONS = 4


def _is_text_encoding(name: str) -> bool:
    try:
        return "a".encode(name).decode(name) == "a"
    except (LookupError, UnicodeError):
        return False


@arguments_checked
@dataclass(frozen=True)
class LakeTopic:
    """A topic made from files of a lake, each of which is loaded once.

    ::

        LakeTopic("flights", "s3://lake/flights/**/*.parquet", key="origin", timestamp="departed")

    A field is a column, ``after.id`` a field of a struct, and ``"{date} {time}"`` text put together from columns.

    Attributes:
        name: The topic archive's name.
        source: Where the files are: paths, folders, patterns or URLs; or tables, or queries (``sql:SELECT ...``). See
            `statelib.ingest.sources.find`.
        key: The field of the keys; None: no keys.
        value: The field of the values, or the fields of a struct; none: all but those of key and timestamp.
        timestamp: The field of the timestamps, which has to be named unless layout or envelope tell it; the error names
            fields that look like times.
        partition: The field of the partitions in Kafka; None: what the layout tells, else chosen by keys.
        offset: The field of the offsets there; None: what the layout tells, else new ones.
        timestamp_unit: Of timestamps that are numbers; None: what they look like, which is shown.
        timestamp_format: Of timestamps that are text, as in strptime; None: ISO 8601.
        timezone: Of timestamps without one.
        order: The order of a partition's records within a load: ``timestamp`` (no record is late), ``arrival`` (files
            in the order of their paths, rows as they stand there), ``offset`` (the topic's own, with its offsets, where
            layout or `offset` tell them), or a field. None: ``offset`` where it is told, else ``timestamp``.
        partitions: Of the topic; None: as many as it has; for a new one as many as the layout tells, or 4.
        format: Of the files; None: what their names and first bytes say.
        layout: How a topic lies in the files: ``connect`` and ``aiven`` (files of these sink connectors, whose names
            tell partition and offset), ``kcat`` (rows of ``kcat -J``), or ``files``, whose rows are the values. None:
            what names and rows look like.
        envelope: What values are wrapped in: ``debezium``, whose changes of a database's rows become the rows; or
            ``rows``, nothing.
        types: Of fields of CSV and JSON that shall not be what they look like, such as ``{"zip": "string"}``.
        delimiter: Between the values of CSV (None: what the first line has most of), or behind each value of ``bytes``
            (None: a line break).
        encoding: Of CSV and JSON.
        decimal_separator: Of numbers in CSV: ``.``, or ``,``, where a point stands between thousands (``1.822,84``).
        columns: The names of the columns of CSV, where its first line does not have them; none: it does.
        value_encoding: Of the values in Aiven's CSV, as its sink was configured.
        file_name_template: Of the names of files of Aiven's sinks, as the sink was configured, such as
            ``{{topic}}/{{partition}}/{{start_offset}}``; None: the default one.
        key_serde: Reads keys that are bytes in the files, and serialises keys to choose the partition; None: Kafka's
            own serde for their type. A serde, or a name: ``registry``, ``json``, ``string``, ``int64``, ...
            (`statelib.ingest.values.deserializers`).
        value_serde: Reads values that are bytes in the files: a layout's, or those of the field that `value` names.
        on_bad_record: What becomes of rows that cannot be loaded: ``fail``, which ends the load, or ``quarantine``.
            None: what the setting ``on_bad_record`` says.
        registry: The schema registry that ``registry`` stands for. If there is one, it is what reads keys and values
            for which no serde is given.

    Raises:
        ConfigurationError: Kafka does not allow this name; there is no source; or a choice is not known.
    """

    name: str
    source: str | tuple[str, ...]
    key: str | None = None
    value: str | tuple[str, ...] = ()
    timestamp: str | None = None
    partition: str | None = None
    offset: str | None = None
    timestamp_unit: Literal["s", "ms", "us", "ns"] | None = None  # choices are written out for messages to show them
    timestamp_format: str | None = None
    timezone: str = "UTC"
    order: str | None = None
    partitions: int | None = None
    format: Literal["parquet", "csv", "json", "avro", "bytes"] | None = None
    layout: Literal["files", "connect", "aiven", "kcat"] | None = None
    envelope: Literal["rows", "debezium"] = "rows"
    types: Mapping[str, str] = field(default_factory=dict)
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal_separator: Literal[".", ","] = "."
    columns: tuple[str, ...] = ()
    value_encoding: Literal["base64", "none"] = "base64"
    file_name_template: str | None = None
    key_serde: Serde | str | None = None
    value_serde: Serde | str | None = None
    registry: SchemaSource | None = None
    on_bad_record: Literal["fail", "quarantine"] | None = None

    def __post_init__(self) -> None:
        """Checks what can be checked without the files."""
        check_name(self.name, "a topic")
        if not self.sources:
            step = "name a file, a folder, a pattern such as 'data/*.csv', or a URL"
            raise ConfigurationError("a topic of a lake has no source", topic=self.name, next_step=step)
        if self.partitions is not None and self.partitions < 1:
            what = f"a topic cannot have {counted(self.partitions, 'partition')}"
            raise ConfigurationError(what, topic=self.name, next_step="name one or more")
        if not _is_text_encoding(self.encoding):
            step = "name one such as utf-8, latin-1, cp1252 or utf-16"
            what = "there is no such encoding"
            raise ConfigurationError(what, setting="encoding", given=self.encoding, next_step=step)

    @property
    def sources(self) -> tuple[str, ...]:
        """All sources."""
        return (self.source,) if isinstance(self.source, str) else tuple(self.source)

    @property
    def archive_name(self) -> str:
        """The name of the topic archive."""
        return self.name


def load_lake_topic(reference: str) -> LakeTopic:
    """Loads the topic at ``package.module:attribute`` or ``path/to/file.py:attribute``.

    Raises:
        ConfigurationError: There is no such module, file or attribute, or it is no `LakeTopic`.
    """
    found = load_attribute(reference, "topic")
    if not isinstance(found, LakeTopic):
        next_step = "name a hindstream.LakeTopic, as FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError("this is no topic of a lake", topic=reference, next_step=next_step)
    return found
