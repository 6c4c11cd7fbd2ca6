"""Files whose names say where their records stand in a topic, and files that belong together.

Kafka Connect's sinks for object stores and HDFS write, for a partition of a topic::

    topics/<topic>/<folders of the partitioner>/<topic>+<partition>+<first offset>.<ext>            values
                                                <topic>+<partition>+<first offset>.keys.<ext>       their keys
                                                <topic>+<partition>+<first offset>.headers.<ext>    their headers
                                                <topic>+<partition>+<first>+<last offset>.<ext>     HDFS: values

Records without a value are in files of keys alone. Aiven's sinks write ``<topic>-<partition>-<first offset>``, or what
a template says (``file.name.template``).

Sources: ``TopicPartitionWriter`` of kafka-connect-storage-cloud, ``FileUtils`` of kafka-connect-hdfs, the README of
Aiven's connectors ("File name format"), ``FilenameTemplateVariable`` and ``CompressionType`` of their
commons-for-apache-kafka-connect.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.ingest.sources.files import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from statelib.ingest.sources.files import SourceFile

CONNECT_NAME = re.compile(
    r"(?P<topic>.+)\+(?P<partition>\d+)\+(?P<first>\d+)(\+(?P<last>\d+))?(\.(?P<part>keys|headers))?\.(?P<ext>[^+]+)"
)
"""A file of Kafka Connect's sinks."""

_AIVEN = re.compile(r"(?:.*/)?(?P<topic>[^/]+)-(?P<partition>\d+)-(?P<start_offset>\d+)(\.[^-/]*)?")
"""A file of Aiven's sinks, by the default template of their names."""

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*(?::[^}]*)?\}\}")
_VALUES = {"topic": ".+?", "partition": r"\d+", "start_offset": r"\d+", "timestamp": r"\d+", "key": ".*?"}
_TELLING = ("partition", "start_offset")


def placed_by_connect(files: Sequence[SourceFile]) -> list[SourceFile] | None:
    """The files of Kafka Connect with their places, keys and headers; None: others are among them.

    Raises:
        ConfigurationError: They are of several topics.
    """
    matches = [(file, CONNECT_NAME.fullmatch(file.name)) for file in files]
    if not files or not all(match for _, match in matches):
        return None
    _check_one_topic({match["topic"] for _, match in matches if match})
    groups: dict[tuple[str, str], dict[str, SourceFile]] = {}
    for file, match in matches:
        assert match is not None  # noqa: S101 - looked at above
        stem = f"{match['topic']}+{match['partition']}+{match['first']}+{match['last']}"
        groups.setdefault((file.path.rpartition("/")[0], stem), {})[match["part"] or "values"] = file
    placed = []
    for parts in groups.values():
        main = parts.get("values") or parts.get("keys") or parts["headers"]
        match = CONNECT_NAME.fullmatch(main.name)
        assert match is not None  # noqa: S101 - looked at above
        place = Place(
            partition=int(match["partition"]),
            first_offset=int(match["first"]),
            keys=parts.get("keys"),
            headers=parts.get("headers"),
            is_tombstones="values" not in parts,
        )
        placed.append(replace(main, place=place))
    return sorted(placed, key=lambda file: file.path)


def placed_by_aiven(files: Sequence[SourceFile], template: str | None = None) -> list[SourceFile] | None:
    """The files of Aiven's connectors with their places; None: others are among them.

    Args:
        files: The files.
        template: Of their names (``file.name.template``); None: the default one.

    Raises:
        ConfigurationError: They are of several topics, or the template tells no places.
    """
    pattern = _AIVEN if template is None else _pattern_of(template)
    matches = [(file, pattern.fullmatch(file.path)) for file in files]
    if not files or not all(match for _, match in matches):
        return None
    if "topic" in pattern.groupindex:
        _check_one_topic({match["topic"] for _, match in matches if match})
    return [
        replace(file, place=Place(int(match["partition"]), int(match["start_offset"])))
        for file, match in matches
        if match
    ]


def _pattern_of(template: str) -> re.Pattern[str]:
    """What paths with names of a template end with; a compression's suffix may stand behind it."""
    step = "give the sink's file.name.template, such as '{{topic}}-{{partition}}-{{start_offset}}'"
    variables = _VARIABLE.findall(template)
    if unknown := [name for name in variables if name not in _VALUES]:
        what = f"a template of file names has no variable {unknown[0]!r}"
        raise ConfigurationError(what, setting="file_name_template", given=template, next_step=step)
    if missing := [name for name in _TELLING if name not in variables]:
        what = f"the template of file names has no variable {missing[0]!r}: the names do not tell where records were"
        step = "load the files as plain rows: --layout files --key key --value value --timestamp timestamp"
        raise ConfigurationError(what, setting="file_name_template", given=template, next_step=step)
    parts, end, seen = [], 0, set[str]()
    for found in _VARIABLE.finditer(template):
        name = found[1]
        parts.append(re.escape(template[end : found.start()]))
        again = f"(?P={name})" if name in seen and name != "timestamp" else None
        parts.append(again or (f"(?P<{name}>{_VALUES[name]})" if name != "timestamp" else _VALUES[name]))
        seen.add(name)
        end = found.end()
    parts.append(re.escape(template[end:]))
    return re.compile(rf"(?:.*/)?{''.join(parts)}(\.(gz|snappy|zst))?")


def _check_one_topic(topics: Iterable[str]) -> None:
    found = sorted(topics)
    if len(found) > 1:
        what = f"the files are of {counted(len(found), 'topic')}: {', '.join(found[:5])}"
        step = "load each topic by itself: name its folder"
        raise ConfigurationError(what, next_step=step)
