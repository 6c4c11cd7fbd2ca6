"""The fields of all new files of a load together, and what of them is told before anything is loaded."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.sources.queries import casting_query
from statelib.ingest.values.types import storable, united_text
from statelib.storage.transfers import in_parallel
from statelib.topics.parquet.schema_changes import united

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from statelib.ingest.formats.read import FileReader
    from statelib.ingest.lake_rows import LakeReader
    from statelib.ingest.sources.files import SourceFile
    from statelib.job.lake_topic import LakeTopic

_MOST_SAMPLED = 16
_FILES_AT_ONCE = 16


def united_fields(
    reader: LakeReader, files: Sequence[SourceFile], given: Mapping[str, pa.DataType], had: Mapping[str, pa.DataType]
) -> tuple[pa.Schema, dict[str, pa.DataType], frozenset[str]]:
    """The fields of all files together, the types of those of text files, and which are text since they are mixed.

    Args:
        reader: Reads the files.
        files: All new ones.
        given: Types of fields that text files are read as.
        had: Types of fields that the topic has, or is to have.

    Raises:
        ConfigurationError: A file does not go together with the others; it is named.
    """
    exact = [file for file in files if reader.is_exact(file)]
    text = [file for file in files if not reader.is_exact(file)]
    sampled = (
        text
        if len(text) <= _MOST_SAMPLED
        else [text[n * (len(text) - 1) // (_MOST_SAMPLED - 1)] for n in range(_MOST_SAMPLED)]
    )
    at_once = _FILES_AT_ONCE if "://" in files[0].path else 1
    schemas = in_parallel(reader.schema, [*exact, *sampled], at_once)
    united_: dict[str, pa.DataType] = {}
    types, mixed = dict(given), set()
    for n, (file, schema) in enumerate(zip([*exact, *sampled], schemas, strict=True)):
        is_exact = n < len(exact)
        is_csv = not is_exact and reader.files.format_of(file) == "csv"
        _check_names(schema, file)
        for field in schema:
            type_ = storable(field.type) if is_exact else given.get(field.name, field.type)
            if type_ is None:
                type_ = pa.null()
            before = united_.get(field.name, had.get(field.name) if is_exact else None)
            united_[field.name] = (
                type_
                if before is None
                else _together(before, type_, field.name, file, is_text=not is_exact, is_csv=is_csv)
            )
            if not is_exact:
                types[field.name] = united_[field.name]
                if (
                    is_csv
                    and pa.types.is_string(united_[field.name])
                    and not {type_, before} <= {pa.string(), pa.null(), None}
                ):
                    mixed.add(field.name)
    return pa.schema(list(united_.items())), types, frozenset(mixed)


def _check_names(schema: pa.Schema, file: SourceFile) -> None:
    if twice := [name for name, count in Counter(schema.names).items() if count > 1]:
        step = "rename one of the columns, in a copy of the file"
        raise InputError("two columns of a file have one name", file=file.path, field=twice[0], next_step=step)


def has_rows(reader: LakeReader, files: Sequence[SourceFile]) -> bool:
    """Whether there are rows at all, where none has a field.

    Raises:
        InputError: A row cannot be read; that says more than a field that is missing.
    """
    for file in files:
        for rows in reader.rows(file):
            if rows.bad:
                first = min(rows.bad, key=lambda row: row.row)
                step = "check that the file is what its name says, or name its format: --format"
                what = f"no row of the new files can be read: {first.reason}"
                raise InputError(what, file=file.path, row=first.row, next_step=step)
            if len(rows.numbers):
                return True
    return False


def check_declared(topic: LakeTopic, schema: pa.Schema, reader: FileReader, files: Sequence[SourceFile]) -> None:
    """Checks that fields whose types were asked for are there, at the first load; later files may do without.

    Raises:
        ConfigurationError: One is not.
    """
    for name in topic.types:
        outer, dot, _ = name.partition(".")
        if dot and outer in schema.names and pa.types.is_struct(schema.field(outer).type):
            step = "declare the whole field: --type FIELD=string keeps its JSON"
            what = "the type of a field within another cannot be declared"
            raise ConfigurationError(what, field=name, next_step=step)
        if name not in schema.names and not any(reader.format_of(file) == "json" for file in files):
            step = did_you_mean(name, schema.names, "the rows have")
            raise ConfigurationError("no row has such a field", setting="type", field=name, next_step=step)


def _together(
    before: pa.DataType, type_: pa.DataType, field: str, file: SourceFile, *, is_text: bool, is_csv: bool
) -> pa.DataType:
    try:
        return united_text(before, type_, field) if is_text else united(before, type_, field)
    except ConfigurationError as error:
        if is_text and not pa.types.is_nested(before) and not pa.types.is_nested(type_):
            return pa.string() if is_csv else before
        where = error.place.get("field", field)
        what = f"a file cannot be merged with those before it: {where} is {type_} there, and was {before}"
        query = None if is_text or where != field else casting_query(file, field, before)
        step = "load it into another topic"
        if query is not None:
            step = f"name this source in its place: {query}; or {step}"
        if is_text:
            step = f"read the field as text everywhere: --type {shlex.quote(f'{field}=string')}; or {step}"
        raise ConfigurationError(what, file=file.path, field=field, next_step=step) from None
