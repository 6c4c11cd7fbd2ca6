"""Which part of a job's changelogs may be compacted, and how: what Kafka's topic settings say for its log cleaner.

A state must come out the same from a compacted changelog, as of any commit that can be gone back to. So what is cleaned
lies before the offsets of all of these, and what they need decides how:

=====================  ===========================================  ===========================  ====================
store                  of each key stays                            ``min.compaction.lag.ms``    goes too
=====================  ===========================================  ===========================  ====================
versioned              the record with the largest timestamp, of    history retention + 24 h     -
                       several the last: its latest value, also     (KIP-889)
                       where records are late
window, session        the last record                              0                            expired windows,
                                                                                                 expired sessions
join-window            the last record                              0                            what nobody is to
                                                                                                 meet any more
deduplication          the last record: entries of an id never get  0                            expired entries
                       older
key-value,             the last record                              0                            -
suppression-buffer,
join-buffer,
held-records,
punctuation,
subscriptions,
foreign-key-answers
=====================  ===========================================  ===========================  ====================

The lag is held against the largest timestamp before those offsets, not against the wall clock: a replay is always late.
It ends at the first file with a younger record. Where segments of a versioned store are longer than 24 hours, a segment
takes their place: history goes segment by segment.

What expires goes 24 hours after its store has expired it, by the log's own largest time: no clock of these commits is
behind that. A window or session store of a processor finds its clock in the log: the record of the largest time stays.

A changelog of which these commits have stores of several kinds (a migration) waits until the older ones have expired.
Versioned stores as shipped (``semantics="kafka-4.3"``) depend on records that they have refused, too: their changelogs
are not compacted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.commits.layout import Runs, changelog_topic
from statelib.operators.joins.stream_stream.definition import retention_of
from statelib.operators.versioned.segment_interval import deduplication_segment_ms, default_segment_interval_ms
from statelib.settings.semantics import rules_of
from statelib.topics.cleaning import Cleaning, Expiry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import StoreDescription
    from statelib.settings.semantics import Rules
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive
    from statelib.topics.files import ArchiveFile

ADDITIONAL_RETENTION_MS = 86_400_000
"""Kafka Streams' ``windowstore.changelog.additional.retention.ms``."""

MIN_CLEANABLE_DIRTY_RATIO = 0.5
"""Kafka's ``min.cleanable.dirty.ratio``: nothing is cleaned before so much of what could be is new."""

_OF_TIME_AND_SEQUENCE = np.dtype([("time", ">i8"), ("sequence", ">i4")])
_KEY_TAILS = {
    "window": _OF_TIME_AND_SEQUENCE,
    "session": np.dtype([("time", ">i8"), ("start", ">i8")]),
    "join-window": _OF_TIME_AND_SEQUENCE,
}
"""By kind of store that expires by its keys, what keys in its changelog end with (`statelib.operators.changelog`)."""


@dataclass(frozen=True, slots=True)
class ChangelogSettings:
    """How the changelog of a store is compacted.

    Attributes:
        kind: Of store.
        lag_ms: Kafka's ``min.compaction.lag.ms``.
        retention_ms: How long the store keeps what it has at the most; None: as long as it is not deleted.
    """

    kind: str
    lag_ms: int = 0
    retention_ms: int | None = None

    @property
    def expiry(self) -> Expiry | None:
        """What of the changelog has expired."""
        if self.retention_ms is None:
            return None
        return Expiry(self.retention_ms + ADDITIONAL_RETENTION_MS, _KEY_TAILS.get(self.kind))


def min_compaction_lag_ms(store: StoreDescription) -> int:
    """The lag that a store's changelog needs."""
    if store.kind != "versioned":
        return 0
    retention_ms: int = store.settings["history_retention_ms"]
    segment_ms: int = store.settings["segment_interval_ms"] or default_segment_interval_ms(retention_ms)
    return retention_ms + max(ADDITIONAL_RETENTION_MS, segment_ms)


class ChangelogUse:
    """What the commits that can be gone back to need of the job's changelogs."""

    def __init__(self, warehouse: Storage, job: str) -> None:
        self._runs = Runs(warehouse, job)
        self._job = job
        self._topologies: set[tuple[str, Rules]] = set()

    def seen(self, commits: Iterable[Commit]) -> Iterator[Commit]:
        """Takes note of these commits, as they go by."""
        for commit in commits:
            self._topologies.add((commit.fingerprint, rules_of(commit.semantics or "kip")))
            yield commit

    def needed_lag_ms(self, store: str) -> int:
        """The longest lag that the changelog of a store needs."""
        described = [self._runs.topology(fingerprint) for fingerprint, _ in self._topologies]
        stores = (one for topology in described if topology for one in topology.stores if one.name == store)
        return max(map(min_compaction_lag_ms, stores), default=0)

    def settings(self) -> dict[str, ChangelogSettings]:
        """By topic, of the changelogs that can be compacted."""
        found: dict[str, list[ChangelogSettings | None]] = {}
        for fingerprint, rules in self._topologies:
            described = self._runs.topology(fingerprint)
            for store in described.stores if described else ():
                found.setdefault(changelog_topic(self._job, store.name), []).append(_settings(store, rules))
        common = {topic: _common(wanted) for topic, wanted in found.items() if len(wanted) == len(self._topologies)}
        return {topic: settings for topic, settings in common.items() if settings is not None}


def wanted_cleaning(
    archive: TopicArchive,
    settled: Sequence[ArchiveFile],
    settings: ChangelogSettings,
    tombstones_before: Callable[[int], int],
) -> Cleaning | None:
    """What is to be cleaned of a partition now; None: too little is new.

    Args:
        archive: The newest version.
        settled: The partition's files that no rollback can reach, from its first one on.
        settings: Of the changelog.
        tombstones_before: By partition, see `Cleaning`; asked for only where something is cleaned.
    """
    lag_ms = max(settings.lag_ms, archive.min_compaction_lag_ms or 0)
    newest = max((file.max_timestamp_ms for file in settled if file.max_timestamp_ms is not None), default=0)
    files: list[ArchiveFile] = []
    for file in settled:
        is_young = lag_ms > 0 and (file.max_timestamp_ms is None or file.max_timestamp_ms >= newest - lag_ms)
        if is_young:
            break
        files.append(file)
    if not files:
        return None
    dirty_offset = archive.cleaned_offset(files[0].partition)
    dirty = sum(file.size_bytes for file in files if file.first_offset >= dirty_offset)
    if not dirty or dirty < MIN_CLEANABLE_DIRTY_RATIO * sum(file.size_bytes for file in files):
        return None
    return Cleaning(
        files=tuple(files),
        dirty_offset=dirty_offset,
        by_timestamp=settings.kind == "versioned",
        tombstones_before=tombstones_before(files[0].partition),
        expiry=settings.expiry,
    )


def _settings(store: StoreDescription, rules: Rules) -> ChangelogSettings | None:
    if store.kind == "versioned" and rules != "kip":
        return None
    return ChangelogSettings(store.kind, min_compaction_lag_ms(store), _retention_ms(store, rules))


def _retention_ms(store: StoreDescription, rules: Rules) -> int | None:
    """See `ChangelogSettings`."""
    settings = store.settings
    retention_ms: int | None = None
    match store.kind:
        case "window" | "session":
            of_processor = "store" in settings  # its class
            retention_ms = settings["retention_ms"] if of_processor else settings["seen_ms"][rules]
        case "join-window":
            retention_ms = retention_of(settings)
        case "deduplication":  # by segments
            retention_ms = settings["interval_ms"] + deduplication_segment_ms(settings["interval_ms"])
    return retention_ms


def _common(wanted: Sequence[ChangelogSettings | None]) -> ChangelogSettings | None:
    """What keeps what each of them keeps."""
    present = [settings for settings in wanted if settings is not None]
    if len({settings.kind for settings in present}) != 1 or len(present) != len(wanted):
        return None
    retained = [one.retention_ms for one in present if one.retention_ms is not None]
    return ChangelogSettings(present[0].kind, max(one.lag_ms for one in present), max(retained, default=None))
