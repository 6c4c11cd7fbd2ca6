"""What of the DSL random programs do not call is written down, with the reason."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

import pytest

import statelib
from tests.differential.generator import program_of
from tests.differential.topology import topology_of

if TYPE_CHECKING:
    from types import CodeType, FrameType

_PROGRAMS = range(400)

NOT_CALLED: dict[str, dict[str, str]] = {
    "Kafka Streams does not have them": {
        "KGroupedStream": "aggregate max mean min sum",
        "KGroupedTable": "aggregate mean sum",
        "KStream": "deduplicate deduplicate_by_key deduplicate_by_key_value",
        "KTable": "store",
        "SessionWindowedKStream": "aggregate distinct max mean min sum",
        "TimeWindowedKStream": "aggregate distinct max mean min sum",
        "WindowedKTable": "store",
    },
    "they print": {"KStream": "print"},
    "they only name something": {
        "Branched": "with_consumer with_function with_name",
        "Deduplicated": "as_ with_name",
        "Grouped": "as_ with_name",
        "Joined": "as_ with_name",
        "Named": "with_name",
        "Produced": "as_ with_name",
        "Repartitioned": "as_ with_name",
        "StreamJoined": "as_ with_name with_store_name",
        "TableJoined": "as_ with_name",
    },
    "the test driver has one partition": {
        "Produced": "stream_partitioner with_partitions with_stream_partitioner",
        "Repartitioned": ("number_of_partitions stream_partitioner with_number_of_partitions with_stream_partitioner"),
    },
    "they do not change results": {
        "BuiltInDslStoreSuppliers": "name value",
        "Deduplicated": "key_serde value_serde with_ with_key_serde with_value_serde",
        "Grouped": "key_serde value_serde with_ with_key_serde with_value_serde",
        "Joined": (
            "key_serde other_value_serde value_serde with_ with_key_serde with_other_value_serde with_value_serde"
        ),
        "Materialized": (
            "with_ with_caching_disabled with_caching_enabled with_key_serde with_logging_disabled "
            "with_logging_enabled with_store_type with_value_serde"
        ),
        "Repartitioned": "with_ with_key_serde with_value_serde",
        "StreamJoined": (
            "with_ with_dsl_store_suppliers with_key_serde with_logging_disabled with_logging_enabled "
            "with_other_value_serde with_value_serde"
        ),
        "TableJoined": "with_",
    },
    "it is set to zero": {"StreamJoined": "with_emit_interval"},
    "they describe a topology": {
        "GlobalKTable": "queryable_store_name",
        "KTable": "queryable_store_name",
        "Topology": (
            "bootstrap_topics describe has_patterns matched_by_pattern partitions read_back repartition_partitions "
            "sink_topics source_changelogs with_sinks"
        ),
        "WindowedKTable": "queryable_store_name",
    },
}
"""By the reason and the class."""


@pytest.mark.thorough
def test_what_random_programs_do_not_call_is_written_down() -> None:
    code_of = _public()
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    sys.setprofile(note)
    try:
        for seed in _PROGRAMS:
            topology_of(program_of(seed))
    finally:
        sys.setprofile(None)
    not_called = {
        f"{name}.{each}" for of in NOT_CALLED.values() for name, methods in of.items() for each in methods.split()
    }
    assert {name for name, code in code_of.items() if code not in called} == not_called


def _public() -> dict[str, CodeType]:
    """The public methods and properties of the DSL."""
    found: dict[str, CodeType] = {}
    for name in statelib.__all__:
        of = getattr(statelib, name)
        if not isinstance(of, type) or not of.__module__.startswith("statelib.dsl"):
            continue
        for each, member in inspect.getmembers(of):
            function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", member))
            if not each.startswith("_") and hasattr(function, "__code__"):
                found[f"{name}.{each}"] = function.__code__
    return found
