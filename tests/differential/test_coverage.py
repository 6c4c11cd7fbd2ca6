"""What of the DSL random programs do not call is written down, with the reason."""

from __future__ import annotations

import pytest

import statelib
from tests.differential.generator import program_of
from tests.differential.topology import topology_of
from tests.dsl.public_methods import called_from_tests, public_methods

_PROGRAMS = range(400)

NOT_CALLED: dict[str, dict[str, str]] = {
    "Kafka Streams does not have them": {
        "KGroupedStream": "aggregate max mean min sum",
        "KGroupedTable": "aggregate mean sum",
        "KStream": "deduplicate deduplicate_by_key deduplicate_by_key_value",
        "SessionWindowedKStream": "aggregate distinct max mean min sum",
        "TimeWindowedKStream": "aggregate distinct max mean min sum",
    },
    "they print": {
        "KStream": "print",
    },
    "they only name something": {
        "Branched": "with_name",
        "Deduplicated": "with_name",
        "Grouped": "with_name",
        "Joined": "with_name",
        "Named": "with_name",
        "Produced": "with_name",
        "Repartitioned": "with_name",
        "StreamJoined": "with_name with_store_name",
        "TableJoined": "with_name",
    },
    "the test driver has one partition": {
        "Produced": "with_stream_partitioner",
        "Repartitioned": "with_number_of_partitions with_stream_partitioner",
    },
    "they do not change results": {
        "Deduplicated": "with_key_serde with_value_serde",
        "Grouped": "with_key_serde with_value_serde",
        "Joined": "with_key_serde with_other_value_serde with_value_serde",
        "Materialized": (
            "with_caching_disabled with_caching_enabled with_key_serde with_logging_disabled "
            "with_logging_enabled with_store_type with_value_serde"
        ),
        "Repartitioned": "with_key_serde with_value_serde",
        "StreamJoined": (
            "with_dsl_store_suppliers with_key_serde with_logging_disabled with_logging_enabled "
            "with_other_value_serde with_value_serde"
        ),
    },
    "it is set to zero": {
        "StreamJoined": "with_emit_interval",
    },
    "they describe a topology": {
        "Materialized": "table_store",
        "Topology": "describe matched_by_pattern partitions repartition_partitions with_sinks",
    },
}
"""By the reason and the class."""


@pytest.mark.thorough
def test_what_random_programs_do_not_call_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = (getattr(statelib, name) for name in statelib.__all__)
    classes = [of for of in exported if isinstance(of, type) and of.__module__.startswith("statelib.dsl")]
    every = public_methods(classes)
    called = called_from_tests(monkeypatch, every, lambda: [topology_of(program_of(seed)) for seed in _PROGRAMS])
    not_called = {
        f"{name}.{each}" for of in NOT_CALLED.values() for name, methods in of.items() for each in methods.split()
    }
    assert every.keys() - called == not_called
