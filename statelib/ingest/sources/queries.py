"""Queries among the sources: ``sql:SELECT ...``. `hindstream.spark.lake.queries` runs them; here they have names.

A query is loaded once, as a file is. It is known by its text, whatever white space stands between its words; with other
words it is another query. The version of its files in the ledger is ``sql <hash of the text>``.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.sources.files import SourceFile

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "sql:"
_VERSION = "sql "
_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)""", re.DOTALL)

_TYPE_NAMES = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT", pa.int64(): "BIGINT",
    pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.string(): "STRING", pa.binary(): "BINARY", pa.date32(): "DATE",
}  # fmt: skip

RunQuery = Callable[[str], Sequence[SourceFile]]
"""Runs a query and gives the files of its result, in the order of its rows; none: it has no rows."""


def is_query(source: str) -> bool:
    """Whether a source is a query."""
    return source.startswith(PREFIX)


def query_text(source: str) -> str:
    """The query, without the mark of its end."""
    return source.removeprefix(PREFIX).strip().rstrip(";").rstrip()


def query_files(source: str, loaded: Mapping[str, tuple[int, str]], run_query: RunQuery | None) -> list[SourceFile]:
    """The files of a query's result: as they were loaded, else those of a new one.

    Args:
        source: The query.
        loaded: By path, size and version of files that were loaded before.
        run_query: Runs it.

    Raises:
        ConfigurationError: Nobody here runs queries.
        HindstreamError: As ``run_query``.
    """
    version = f"{_VERSION}{_digest(query_text(source))}"
    known = [SourceFile(path, size, told) for path, (size, told) in loaded.items() if told == version]
    if known:
        return known
    if run_query is None:
        step = "load the topic: hindstream ingest, hindstream.spark.ingest"
        raise ConfigurationError("a query is run by Spark, when it is loaded", source=source, next_step=step)
    return [replace(file, version=version) for file in run_query(query_text(source))]


def casting_query(file: SourceFile, field: str, type_: pa.DataType) -> str | None:
    """A source that has the rows of a Parquet file with another type of a field, as a shell takes it.

    None: Spark cannot read the file by its path alone, or has no name for the type.
    """
    name = _type_name(type_)
    if name is None or not file.name.endswith(".parquet") or file.iceberg is not None or file.constants:
        return None
    path = re.sub(r"^s3://", "s3a://", file.path)
    column = _quoted(field)
    columns = f"* EXCEPT ({column}), CAST({column} AS {name}) AS {column}"
    query = f"{PREFIX}SELECT {columns} FROM parquet.{_quoted(path)}"  # noqa: S608 - for the user, of what is theirs
    return shlex.quote(query)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _type_name(type_: pa.DataType) -> str | None:
    """A type as Spark's SQL calls it."""
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    return _TYPE_NAMES.get(type_)


def _digest(text: str) -> str:
    """What is the same of texts that differ in white space alone, outside of what is quoted."""
    parts = _QUOTED.split(text)
    same = "".join(part if n % 2 else re.sub(r"\s+", " ", part) for n, part in enumerate(parts))
    return hashlib.sha256(same.encode()).hexdigest()[:32]
