"""What changelogs of each kind of store are: what puts a store back, and what writes or reads those of applications."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from statelib.described.importing import Pairs
from statelib.operators.deduplication.changelog import RestoringDeduplication
from statelib.operators.joins.foreign_key.changelog import RestoringSubscriptions, SubscriptionExporter
from statelib.operators.joins.stream_stream.changelog import (
    HeldExporter,
    JoinWindowExporter,
    JoinWindowImporter,
    RestoringHeldRecords,
    RestoringJoinWindow,
)
from statelib.operators.joins.stream_table.changelog import JoinBufferExporter, JoinBufferImporter, RestoringJoinBuffer
from statelib.operators.processors.changelog import RestoringSchedule
from statelib.operators.sessions.changelog import RestoringSessions, SessionExporter, SessionImporter
from statelib.operators.suppress.changelog import RestoringSuppression, SuppressionExporter, SuppressionImporter
from statelib.operators.tables.changelog import KeyValueExporter, RestoringKeyValues, RestoringVersions
from statelib.operators.versioned.changelog import VersionedExporter
from statelib.operators.windows.changelog import RestoringWindows, WindowExporter, WindowImporter
from statelib.state.changelog import RestoringSessionStore, RestoringWindowStore
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.described.description import Described
    from statelib.described.exporting import Exporter
    from statelib.described.importing import Importer
    from statelib.described.live_format import StoreFormat
    from statelib.described.restoring import Restoring, Target


class LoggedKind(NamedTuple):
    """What the changelogs of a kind of store are.

    Attributes:
        restoring: Puts back what our own changelog has.
        exporter: Writes the changelog of an application; None: Kafka Streams has no form for it.
        importer: Makes records of our own changelog of an application's; None: they do not tell enough.
        of_processor: As ``restoring``, of custom processors' own stores; None: it is the same.
    """

    restoring: Callable[[Target], Restoring]
    exporter: Callable[[Described, StoreFormat], Exporter] | None = None
    importer: Callable[[Described, StoreFormat], Importer] | None = None
    of_processor: Callable[[Target], Restoring] | None = None


KINDS = {
    "key-value": LoggedKind(RestoringKeyValues, KeyValueExporter, Pairs),
    "versioned": LoggedKind(RestoringVersions, VersionedExporter, Pairs),
    "window": LoggedKind(RestoringWindows, WindowExporter, WindowImporter, RestoringWindowStore),
    "session": LoggedKind(RestoringSessions, SessionExporter, SessionImporter, RestoringSessionStore),
    "deduplication": LoggedKind(RestoringDeduplication),
    "suppression-buffer": LoggedKind(RestoringSuppression, SuppressionExporter, SuppressionImporter),
    "join-buffer": LoggedKind(RestoringJoinBuffer, JoinBufferExporter, JoinBufferImporter),
    "join-window": LoggedKind(RestoringJoinWindow, JoinWindowExporter, JoinWindowImporter),
    "held-records": LoggedKind(RestoringHeldRecords, HeldExporter),
    "subscriptions": LoggedKind(RestoringSubscriptions, partial(SubscriptionExporter, partitioner=partition_for)),
    "foreign-key-answers": LoggedKind(RestoringKeyValues),
    "punctuation": LoggedKind(RestoringSchedule),
}
"""By `statelib.stores.spec.StoreKind`."""
