"""How a topic lies in the files: as it was asked for, or as names and rows look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.ingest.envelopes.aiven import PARTS, is_aiven
from statelib.ingest.envelopes.kcat import is_kcat
from statelib.ingest.sources.layouts import placed_by_aiven, placed_by_connect

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from statelib.ingest.formats.read import FileReader
    from statelib.ingest.sources.files import SourceFile
    from statelib.job.lake_topic import LakeTopic, Layout


def laid_out(
    topic: LakeTopic, found: list[SourceFile], reader: FileReader, loaded: Collection[str]
) -> tuple[Layout, list[SourceFile]]:
    """The layout of the files, and those that a record begins in, with their places.

    Files that have been ``loaded`` need not be there any more, if they are a table's.

    Raises:
        ConfigurationError: They are not of the layout that was asked for.
    """
    asked = "aiven" if topic.file_name_template is not None else topic.layout
    if asked in {None, "connect"} and (placed_ := placed_by_connect(found)) is not None:
        return "connect", placed_
    if asked in {"kcat", "files"}:
        return asked, found
    new = next((file for file in found if file.path not in loaded), None)
    is_told = asked is not None or new is None or new.format is not None  # rows of tables and queries are rows
    names = [] if is_told or new is None else _names_of(new, reader)
    if is_kcat(names):
        return "kcat", found
    if asked == "aiven" or is_aiven(names):
        placed_ = placed_by_aiven(found, topic.file_name_template)
        if placed_ is not None:
            if new is not None:
                _check_csv_of_aiven(new, reader)
            return "aiven", placed_
    if asked is None:
        return "files", found
    raise _not_called_so(topic, found)


def _names_of(file: SourceFile, reader: FileReader) -> list[str]:
    """The fields of a file; of CSV those that it is said to have."""
    if reader.format_of(file) == "csv":
        return list(reader.dialect.columns)
    return list(reader.schema(file).names)


def _check_csv_of_aiven(file: SourceFile, reader: FileReader) -> None:
    """Checks that it is said which fields the lines have.

    Raises:
        ConfigurationError: It is not.
    """
    columns = reader.dialect.columns
    if reader.format_of(file) == "csv" and not ("value" in columns and {*columns} <= PARTS):
        step = "say which, as the sink's format.output.fields: --columns key,value,offset,timestamp,headers"
        what = "Aiven's CSV does not tell which fields it has"
        raise ConfigurationError(
            what, file=file.path, setting="columns", given=",".join(columns) or None, next_step=step
        )


def _not_called_so(topic: LakeTopic, found: Sequence[SourceFile]) -> ConfigurationError:
    if topic.layout == "connect":
        first = next((file.path for file in found if placed_by_connect([file]) is None), None)
        step = "they should be <topic>+<partition>+<offset>.<ext>, or leave --layout out"
        return ConfigurationError("files are not called as Kafka Connect calls them", file=first, next_step=step)
    first = next((file.path for file in found if placed_by_aiven([file], topic.file_name_template) is None), None)
    template = topic.file_name_template or "{{topic}}-{{partition}}-{{start_offset}}"
    step = f"they should be {template}: give the sink's file.name.template with --file-name-template, or --layout files"
    return ConfigurationError("files are not called as Aiven's sink calls them", file=first, next_step=step)
