"""Names of topics: Kafka's rules."""

from __future__ import annotations

import pytest

from statelib.errors.kinds import ConfigurationError
from statelib.topology.topics import check_topic


@pytest.mark.parametrize("topic", ["a", "A.b_c-9", "a" * 249, "...", "..a"])
def test_legal(topic: str) -> None:
    check_topic(topic, "node", partitions=1)


@pytest.mark.parametrize("topic", ["", ".", "..", "a" * 250, "a b", "a/b", "ä", "a\n"])
def test_illegal(topic: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a valid name of a topic.*node NODE.*letters, digits"):
        check_topic(topic, "NODE")
