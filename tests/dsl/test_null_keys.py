"""Records without a key, a value or a key to look up, in joins and behind repartitions: as the real library has it.

The results, and how many records are dropped, are those of the `TopologyTestDriver` of Kafka Streams 4.3.0 and 4.4.0
for the same topologies and records. It does not count what its repartitions leave out; here that is counted, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from statelib import Joined, JoinWindows, Materialized, Named, Repartitioned, Stores, StreamsBuilder, per_record
from statelib.documents.manifests import Staged
from statelib.topology import Sink
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib import KTable
    from statelib.settings.semantics import Semantics

Rows = list[tuple[str, Any, Any, int]]
TYPES = (pa.string(), pa.string())
J = per_record(lambda left, right: f"{left}|{right}".replace("None", "null"), pa.string(), "left", "right")
WITHIN = JoinWindows.of_time_difference_with_no_grace(timedelta(milliseconds=10))


def letter(columns: pa.RecordBatch) -> pa.Array:
    """The value's first letter; null if that is an n, or there is no value."""
    first = pc.utf8_slice_codeunits(columns.column("value"), 0, 1)
    return pc.if_else(pc.equal(first, "n"), None, first)


def versioned() -> Materialized:
    return Materialized.as_(Stores.persistent_versioned_key_value_store("v", timedelta(milliseconds=100)))


@dataclass(frozen=True)
class Case:
    """A topology that reads ``s`` and ``g`` and writes ``out``; what comes out, and how many records are dropped."""

    build: Callable[[StreamsBuilder], object]
    out: str
    dropped: dict[str, int]


def table(builder: StreamsBuilder) -> KTable:
    return builder.table("g")


LOOKED_UP: Rows = [
    ("g", "a", "A", 0), ("g", "k", "K", 0), ("s", "k", "a1", 1), ("s", "k", "n1", 2), ("s", None, "a2", 3),
    ("s", None, "n2", 4), ("s", "k", None, 5), ("s", None, None, 6), ("s", "k", "z", 7),
]  # fmt: skip
FOUND = "k=a1|K@1 k=n1|K@2 k=z|K@7"
FOUND_LEFT = "k=a1|K@1 k=n1|K@2 null=a2|null@3 null=n2|null@4 k=z|K@7"
MAPPED = "k=a1|A@1 null=a2|A@3"
MAPPED_LEFT = "k=a1|A@1 k=n1|null@2 null=a2|A@3 null=n2|null@4 k=z|null@7"
INNER, LEFT = {"null-key": 2, "null-value": 2}, {"null-value": 2}
LOOKUPS = {
    "global": Case(lambda b: b.stream("s").join(b.global_table("g"), letter, J).to("out"), MAPPED, INNER),
    "global-left": Case(lambda b: b.stream("s").left_join(b.global_table("g"), letter, J).to("out"), MAPPED_LEFT, LEFT),
    "global-by-key": Case(lambda b: b.stream("s").join(b.global_table("g"), "key", J).to("out"), FOUND, INNER),
    "global-left-by-key": Case(
        lambda b: b.stream("s").left_join(b.global_table("g"), "key", J).to("out"), FOUND_LEFT, LEFT
    ),
    "global-versioned": Case(
        lambda b: b.stream("s").join(b.global_table("g", versioned()), letter, J).to("out"), MAPPED, INNER
    ),
    "global-versioned-left": Case(
        lambda b: b.stream("s").left_join(b.global_table("g", versioned()), letter, J).to("out"), MAPPED_LEFT, LEFT
    ),
    "table": Case(lambda b: b.stream("s").join(table(b), J).to("out"), FOUND, INNER),
    "table-left": Case(lambda b: b.stream("s").left_join(table(b), J).to("out"), FOUND_LEFT, LEFT),
    "versioned": Case(lambda b: b.stream("s").join(b.table("g", versioned()), J).to("out"), FOUND, INNER),
    "versioned-left": Case(lambda b: b.stream("s").left_join(b.table("g", versioned()), J).to("out"), FOUND_LEFT, LEFT),
    "grace": Case(  # the last one waits; Kafka Streams fails where a left join has a record without a key
        lambda b: b.stream("s").join(
            b.table("g", versioned()), J, Joined.as_("j").with_grace_period(timedelta(milliseconds=2))
        ).to("out"),
        "k=a1|K@1 k=n1|K@2", INNER,
    ),
}  # fmt: skip

BOTH: Rows = [
    ("s", None, "l", 1), ("g", None, "r", 2), ("s", "k", "l2", 3), ("g", "k", "r2", 4), ("s", "k", None, 5),
    ("g", "k", None, 6), ("s", "y", "y", 100), ("g", "y", "y", 100),
]  # fmt: skip
STREAMS = {
    "streams": Case(
        lambda b: b.stream("s").join(b.stream("g"), J, WITHIN).to("out"), "k=l2|r2@4 y=y|y@100",
        {"null-key": 2, "null-value": 2},
    ),
    "streams-left": Case(
        lambda b: b.stream("s").left_join(b.stream("g"), J, WITHIN).to("out"), "null=l|null@1 k=l2|r2@4 y=y|y@100",
        {"null-key": 1, "null-value": 2},
    ),
    "streams-outer": Case(
        lambda b: b.stream("s").outer_join(b.stream("g"), J, WITHIN).to("out"),
        "null=l|null@1 null=null|r@2 k=l2|r2@4 y=y|y@100", {"null-value": 2},
    ),
}  # fmt: skip

REFERRING: Rows = [
    ("g", "a", "A", 0), ("s", "k", "a1", 1), ("s", "k", "n1", 2), ("s", "l", "n2", 3), ("s", "l", "a", 4),
    ("s", "l", None, 5), ("s", None, "a", 6), ("g", None, "x", 7), ("g", "a", "B", 8),
]  # fmt: skip
FOREIGN_KEYS = {
    "foreign-key": Case(
        lambda b: b.table("s").join(table(b), J, foreign_key=letter).to_stream().to("out"),
        "k=a1|A@1 k=null@2 l=a|A@4 l=null@5", {"null-key": 2, "null-foreign-key": 2},
    ),
    "foreign-key-left": Case(
        lambda b: b.table("s").left_join(table(b), J, foreign_key=letter).to_stream().to("out"),
        "k=a1|A@1 k=n1|null@2 l=n2|null@3 l=a|A@4 l=null@5", {"null-key": 2},
    ),
}  # fmt: skip

REPARTITIONED: Rows = [
    ("g", "a", "A", 0), ("s", "k", "a1", 1), ("s", "k", "n1", 2), ("s", None, "a2", 3), ("s", None, "n2", 4),
    ("s", "k", None, 5),
]  # fmt: skip
KEPT_LEFT = "a=a1|A@1 null=n1|null@2 a=a2|A@3 null=n2|null@4"


def kept_for_another(builder: StreamsBuilder) -> None:
    """A left join on one way keeps them for the other ways, too."""
    repartitioned = builder.stream("s").select_key(letter).repartition()
    repartitioned.left_join(table(builder), J).to("joined")
    repartitioned.to("out")


REPARTITIONS = {
    "repartition": Case(lambda b: b.stream("s").repartition().to("out"), "k=a1@1 k=n1@2 k=null@5", {"null-key": 2}),
    "with-options": Case(
        lambda b: b.stream("s").repartition(Repartitioned("again", 1)).map_values("value").to("out"),
        "k=a1@1 k=n1@2 k=null@5", {"null-key": 2},
    ),
    "new-key": Case(
        lambda b: b.stream("s").select_key(letter).repartition().to("out"), "a=a1@1 a=a2@3", {"null-key": 3}
    ),
    "no-repartition": Case(
        lambda b: b.stream("s").select_key(letter).to("out"), "a=a1@1 null=n1@2 a=a2@3 null=n2@4 null=null@5", {}
    ),
    "left": Case(
        lambda b: b.stream("s").select_key(letter).repartition().left_join(table(b), J).to("out"), KEPT_LEFT,
        {"null-value": 1},
    ),
    "left-implicit": Case(
        lambda b: b.stream("s").select_key(letter).left_join(table(b), J).to("out"), KEPT_LEFT, {"null-value": 1}
    ),
    "left-farther-down": Case(
        lambda b: b.stream("s").select_key(letter).repartition().map_values("value").left_join(table(b), J).to("out"),
        KEPT_LEFT, {"null-value": 1},
    ),
    "left-on-another-way": Case(
        kept_for_another, "a=a1@1 null=n1@2 a=a2@3 null=n2@4 null=null@5", {"null-value": 1}
    ),
    "left-behind-another": Case(
        lambda b: b.stream("s").select_key(letter).repartition().select_key("value").repartition()
        .left_join(table(b), J).to("out"),
        "a1=a1|null@1 n1=n1|null@2 a2=a2|null@3 n2=n2|null@4", {"null-value": 1},
    ),
    "left-behind-a-count": Case(
        lambda b: b.stream("s").group_by(letter).count().to_stream()
        .map_values(per_record(str, pa.string(), "value")).left_join(table(b), J).to("out"),
        "a=1|A@1 a=2|A@3", {"null-key": 3},
    ),
    "inner": Case(
        lambda b: b.stream("s").select_key(letter).join(table(b), J).to("out"), "a=a1|A@1 a=a2|A@3", {"null-key": 3}
    ),
    "global": Case(
        lambda b: b.stream("s").repartition().join(b.global_table("g"), letter, J).to("out"), "k=a1|A@1",
        {"null-key": 3, "null-value": 1},
    ),
    "global-left": Case(
        lambda b: b.stream("s").repartition().left_join(b.global_table("g"), letter, J).to("out"),
        "k=a1|A@1 k=n1|null@2 null=a2|A@3 null=n2|null@4", {"null-value": 1},
    ),
    "count": Case(
        lambda b: b.stream("s").group_by(letter).count().to_stream().map_values(per_record(str, pa.string(), "value"))
        .to("out"),
        "a=1@1 a=2@3", {"null-key": 3},
    ),
    "table": Case(
        lambda b: b.stream("s").select_key(letter).to_table().to_stream().to("out"), "a=a1@1 a=a2@3", {"null-key": 3}
    ),
    "table-left": Case(
        lambda b: b.stream("s").select_key(letter).to_table().left_join(table(b), J).to_stream().to("out"),
        "a=a1|A@1 a=a2|A@3", {"null-key": 3},
    ),
    "streams": Case(
        lambda b: b.stream("s").select_key(letter).join(b.stream("g"), J, WITHIN).to("out"), "a=a1|A@1 a=a2|A@3",
        {"null-key": 3},
    ),
    "streams-left": Case(
        lambda b: b.stream("s").select_key(letter).left_join(b.stream("g").select_key(letter), J, WITHIN).to("out"),
        "null=n1|null@2 null=n2|null@4", {"null-value": 1},
    ),
}  # fmt: skip
MODES: tuple[Semantics, ...] = ("kip", "kafka-4.3")
CASES = [
    pytest.param(rows, case, semantics, id=f"{which}-{name}-{semantics}")
    for which, rows, cases, modes in (
        ("lookup", LOOKED_UP, LOOKUPS, MODES),
        ("streams", BOTH, STREAMS, MODES),
        ("referring", REFERRING, FOREIGN_KEYS, MODES),
        ("repartition", REPARTITIONED, REPARTITIONS, MODES[:1]),
    )
    for name, case in cases.items()
    for semantics in modes
]


def replayed(folder: Path, case: Case, rows: Rows, semantics: Semantics, *slices: int) -> tuple[str, dict[str, int]]:
    """What comes out of slices that end before these times, and what was dropped; every ledger adds up."""
    builder = StreamsBuilder("app")
    case.build(builder)
    pipeline = Pipeline(folder, builder.build(), semantics=semantics)
    for topic in pipeline.topology.source_topics:
        pipeline.archive(topic, [row[1:] for row in rows if row[0] == topic], TYPES)
    dropped: dict[str, int] = {}
    for until in (*slices, None):
        staged = pipeline.run(until)
        for task in staged.tasks if isinstance(staged, Staged) else ():
            for metrics in task.metrics.values():
                for reason, count in metrics.dropped.items():
                    dropped[reason] = dropped.get(reason, 0) + count
    shown = [f"{key}={value}@{at}".replace("None", "null") for _, _, key, value, at in pipeline.output("out")]
    return " ".join(shown), dropped


@pytest.mark.thorough
@pytest.mark.parametrize(("rows", "case", "semantics"), CASES)
def test_the_real_librarys_results(tmp_path: Path, rows: Rows, case: Case, semantics: Semantics) -> None:
    slices = (2, 4) if semantics == "kip" else ()
    assert replayed(tmp_path, case, rows, semantics, *slices) == (case.out, case.dropped)


def drops(build: Callable[[StreamsBuilder], object]) -> list[bool]:
    """Of each repartition, whether it drops records without a key."""
    builder = StreamsBuilder("app")
    build(builder)
    return [node.drops_null_keys for node in builder.build().nodes if isinstance(node, Sink) and node.internal]


def test_a_join_beside_a_repartition_keeps_nothing() -> None:
    """Only what is behind it counts, and a table that a join looks into is not behind the join's stream."""
    by_letter = Named.as_("by-letter")
    assert drops(
        lambda b: b.stream("s").left_join(b.stream("g").select_key(letter).to_table(by_letter), J).to("o")
    ) == [True]
    assert drops(lambda b: b.stream("s").left_join(table(b), J).select_key(letter).repartition().to("o")) == [True]


def test_deduplication_forwards_records_without_a_key() -> None:
    second = timedelta(seconds=1)
    assert drops(lambda b: b.stream("s").select_key(letter).deduplicate_by_key(second).to("o")) == [False]
    assert drops(lambda b: b.stream("s").select_key(letter).deduplicate_by_key_value("value", second).to("o")) == [
        False
    ]
    assert drops(lambda b: b.stream("s").deduplicate("value", second).to("o")) == [False, False]
