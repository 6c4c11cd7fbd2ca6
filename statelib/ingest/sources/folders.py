"""What the folders of a file tell of its rows, and the file itself.

::

    lake/views/dt=2013-01-31/country=US/part-0.parquet      dt is 2013-01-31, country is US

Hive, Spark and others leave the columns that a table is partitioned by out of its files. Of a file itself there are

``file.path``, ``file.name``    its path or URL, and the last part of that
``file.modified``               when it was written, or changed for the last time

A field's values have one type in all files: whole numbers, dates, or text. Digits with zeros before them are text, as
in CSV. In a name, ``%3A`` stands for a colon, and ``__HIVE_DEFAULT_PARTITION__`` for null.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from statelib.ingest.sources.files import SourceFile

PATH, NAME, MODIFIED = "file.path", "file.name", "file.modified"
OF_FILES = (PATH, NAME, MODIFIED)

_NULL = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"-?[1-9]\d{0,17}|0")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def folder_fields(path: str) -> dict[str, str | None]:
    """The fields that the folders of a path tell, as text; of one name the innermost."""
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        name, equals, text = folder.partition("=")
        if name and equals:
            found[unquote(name)] = None if text == _NULL else unquote(text)
    return found


def with_folder_fields(
    files: Sequence[SourceFile], types: Mapping[str, pa.DataType], wanted: Collection[str] | None, prefix: str = ""
) -> list[SourceFile]:
    """The files with what their folders tell as constants. Files of tables are as they are: their tables tell it.

    Args:
        files: The files.
        types: What is known of the types of fields.
        wanted: The fields that are; None: all that folders tell.
        prefix: Put before the fields' names.

    Raises:
        ConfigurationError: A folder's text is no value of the type that its field has.
    """
    told = [folder_fields(file.path) if file.modified_ms is not None else {} for file in files]
    names = dict.fromkeys(name for of_file in told for name in of_file if wanted is None or name in wanted)
    chosen = {name: types.get(name) or _type_of(of_file.get(name) for of_file in told) for name in names}
    return [
        replace(
            file,
            constants=(
                *file.constants,
                *(
                    (prefix + name, _scalar(text, chosen[name], name, file))
                    for name, text in of_file.items()
                    if name in chosen
                ),
            ),
        )
        for file, of_file in zip(files, told, strict=True)
    ]


def with_file_fields(files: Sequence[SourceFile], wanted: Collection[str], prefix: str) -> list[SourceFile]:
    """The files with what is wanted of themselves as constants; see `with_folder_fields`."""
    names = [name for name in OF_FILES if name in wanted]
    return [
        replace(file, constants=(*file.constants, *((prefix + name, _of_file(file, name)) for name in names)))
        for file in files
    ]


def _of_file(file: SourceFile, name: str) -> pa.Scalar:
    if name != MODIFIED:
        return pa.scalar(file.path if name == PATH else file.name)
    if file.modified_ms is None:
        step = "name a field of the rows"
        raise ConfigurationError("a table does not tell when its files were written", file=file.path, next_step=step)
    return pa.scalar(file.modified_ms, pa.timestamp("ms", "UTC"))


def _type_of(texts: Iterable[str | None]) -> pa.DataType:
    known = [text for text in texts if text is not None]
    if known and all(_WHOLE.fullmatch(text) for text in known):
        return pa.int64()
    if known and all(_DATE.fullmatch(text) and _parsed(text, pa.date32()) is not None for text in known):
        return pa.date32()
    return pa.string()


def _scalar(text: str | None, type_: pa.DataType, name: str, file: SourceFile) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, type_)
    found = _parsed(text, type_)
    if found is None:
        what = f"a folder says {text!r}, which is no {type_} as the field is"
        step = f"load the files into another topic, where {name} is text: --type {name}=string"
        raise ConfigurationError(what, file=file.path, field=name, next_step=step)
    return found


def _parsed(text: str, type_: pa.DataType) -> pa.Scalar | None:
    try:
        return pa.scalar(text).cast(type_)
    except pa.ArrowException:
        return None
