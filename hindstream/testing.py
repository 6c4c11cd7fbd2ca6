"""A topology tried record by record, without Spark: Kafka Streams' `TopologyTestDriver`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.lazy import offers

if TYPE_CHECKING:
    from statelib.testing.driver import TopologyTestDriver
    from statelib.testing.records import TestRecord

__all__ = ["TestRecord", "TopologyTestDriver"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = offers(
        __name__,
        {
            "TestRecord": "statelib.testing.records:TestRecord",
            "TopologyTestDriver": "statelib.testing.driver:TopologyTestDriver",
        },
    )
