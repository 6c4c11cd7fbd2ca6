"""A topology tried record by record, without Spark: Kafka Streams' `TopologyTestDriver`."""

from __future__ import annotations

from statelib.testing.driver import TestRecord, TopologyTestDriver

__all__ = ["TestRecord", "TopologyTestDriver"]
