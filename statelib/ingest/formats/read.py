"""Reads files of any format: what format a file has, which fields, and its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.formats.avro import avro_rows, avro_schema
from statelib.ingest.formats.compression import open_content, without_compression
from statelib.ingest.formats.csv import CsvDialect, csv_rows, csv_sample
from statelib.ingest.formats.iceberg import iceberg_rows, iceberg_schema
from statelib.ingest.formats.json import json_rows, json_sample
from statelib.ingest.formats.parquet import parquet_rows, parquet_schema
from statelib.ingest.formats.separated_bytes import LINE_BREAK, ONLY_COLUMN, Framing, byte_rows
from statelib.ingest.formats.unreadable import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statelib.ingest.formats.rows import Rows
    from statelib.ingest.sources.files import SourceFile
    from statelib.job.lake_topic import FileFormat

_BY_SUFFIX: dict[str, FileFormat] = {
    "parquet": "parquet", "pq": "parquet", "parq": "parquet", "csv": "csv", "tsv": "csv", "json": "json",
    "jsonl": "json", "ndjson": "json", "avro": "avro", "bin": "bytes",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads files; travels to workers.

    Attributes:
        options: Of the object store.
        format: Of all files; None: what each one's name and first bytes say.
        dialect: Of CSV; its encoding also of JSON, its delimiter also of bytes.
        types: Of fields of CSV and JSON.
        framing: How values that are bytes tell where they end; None: they do not.
        fixed: Fields of CSV and JSON whose types stay what they are: the topic has them, or they were asked for.
        declared: Fields of CSV and JSON whose types were asked for.
    """

    options: Mapping[str, str]
    format: FileFormat | None = None
    dialect: CsvDialect = field(default_factory=CsvDialect)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    framing: Framing | None = None
    fixed: frozenset[str] = frozenset()
    declared: frozenset[str] = frozenset()

    def format_of(self, file: SourceFile) -> FileFormat:
        """The format of a file.

        Raises:
            ConfigurationError: Neither its name nor its content tells.
            InputError: It cannot be read.
        """
        return file.format or self.format or self.format_named(file) or self._by_content(file)

    def format_named(self, file: SourceFile) -> FileFormat | None:
        """The format that a file's name tells; None: it tells none.

        Raises:
            ConfigurationError: It tells a compression that cannot be read.
        """
        name, _ = without_compression(file.name)
        return _BY_SUFFIX.get(name.rpartition(".")[2].lower())

    def _by_content(self, file: SourceFile) -> FileFormat:
        with unreadable(file, "any format"), open_content(file, self.options) as opened:
            first = bytes(opened.read(512))
        if first.startswith(b"PAR1"):
            return "parquet"
        if first.startswith(b"Obj\x01"):
            return "avro"
        if first.lstrip()[:1] in {b"{", b"["}:
            return "json"
        step = "name it: --format parquet, csv, json, avro or bytes"
        raise ConfigurationError("it is not certain which format a file has", file=file.path, next_step=step)

    def is_exact(self, file: SourceFile) -> bool:
        """Whether a file says itself which types its fields have."""
        return self.format_of(file) in {"parquet", "avro"}

    def schema(self, file: SourceFile) -> pa.Schema:
        """The fields of a file's rows: as it says itself, or as its beginning looks like.

        Raises:
            InputError: It cannot be read.
        """
        if file.iceberg is not None:
            return iceberg_schema(file.iceberg)
        match self.format_of(file):
            case "parquet":
                return parquet_schema(file, self.options)
            case "avro":
                return avro_schema(file, self.options)
            case "csv":
                return csv_sample(file, self.options, self.dialect)
            case "json":
                known = {name: self.types[name] for name in self.fixed}
                return json_sample(file, self.options, known, self.dialect.encoding)
            case "bytes":
                return pa.schema([(ONLY_COLUMN, pa.binary())])

    def rows(self, file: SourceFile, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """The rows of a file.

        Args:
            file: The file.
            columns: Those that are needed, where the format can leave others out; None: all.

        Raises:
            InputError: It cannot be read.
        """
        if file.iceberg is not None:
            return iceberg_rows(file, file.iceberg, self.options, columns)
        match self.format_of(file):
            case "parquet":
                return parquet_rows(file, self.options, columns)
            case "avro":
                return avro_rows(file, self.options)
            case "csv":
                return csv_rows(file, self.options, self.dialect, self.types, self.declared)
            case "json":
                encoding = self.dialect.encoding
                return json_rows(file, self.options, self.types, encoding, self.fixed, self.declared)
            case "bytes":
                return byte_rows(file, self.options, self.dialect.delimiter or LINE_BREAK, self.framing)
