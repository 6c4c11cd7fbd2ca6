"""What other programs have done to the archives that a job reads and writes, in words for a person.

Delta tables are open to all. What only adds records is ordinary; what takes records away or changes them is told, as a
job's state and its sinks rest on what was there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.errors.counted import counted
from statelib.topics.other_writers import changes_by_others

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage

_REARRANGES = frozenset({"OPTIMIZE", "REORG"})


def changed_by_others(warehouse: Storage, head: Commit) -> Iterator[str]:
    """A sentence for each thing that has happened to a source since a commit, or to a sink."""
    yield from _sources(warehouse, head)
    yield from _sinks(warehouse, head)


def _sources(warehouse: Storage, head: Commit) -> Iterator[str]:
    for source in head.sources:
        archive = open_archive_if_present(warehouse, source.topic)
        if archive is None or source.table_id not in {None, archive.table_id}:
            continue  # the plan says so
        if archive.version < source.delta_version:
            yield (
                f"the archive of topic {source.topic} has come to version {archive.version}, and had come to"
                f" {source.delta_version} at commit {head.commit}: entries of its log, and records, are gone"
            )
        for change in changes_by_others(archive, source.delta_version):
            what = f"{change.operation} by {change.by}, version {change.version} of the archive of topic {source.topic}"
            if change.operation in _REARRANGES:
                yield f"{what}: its files are read in the order of offsets, and whole"
            else:
                yield (
                    f"{what}: the state rests on what was there before; hindstream topic restore {source.topic}"
                    f" --to {change.version - 1} brings it back"
                )


def _sinks(warehouse: Storage, head: Commit) -> Iterator[str]:
    for topic, ends in sorted(head.sink_offsets().items()):
        archive = open_archive_if_present(warehouse, topic)
        if archive is None or any(archive.cleaned_offset(p) for p in range(archive.partitions)):
            continue  # never written, or compacted
        is_shown = archive.has_committed(head.job, head.commit)
        missing = (sum(ends.values()) if is_shown else sum(archive.end_offsets().values())) - archive.rows
        way_on = f"hindstream state republish {head.job} {topic} brings back what was there"
        for change in changes_by_others(archive):
            if change.operation not in _REARRANGES and not missing:
                what = f"{change.operation} by {change.by}, version {change.version}"
                yield f"{what} of the archive of topic {topic}, which the job writes: {way_on}"
        if missing < 0:
            more = f"{counted(-missing, 'record is', 'records are')} there that the job has not written"
            yield f"of topic {topic} {more}: another program has added to it; {way_on}"
        if missing > 0:
            lost = counted(missing, "record is", "records are")
            yield (
                f"of topic {topic} {lost} missing that the job has written: another program has deleted what was there;"
                f" hindstream state republish {head.job} {topic} brings it back"
            )
