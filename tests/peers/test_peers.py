"""A hundred scenarios of Kafka Streams' own tests have the same results here."""

from __future__ import annotations

import json

import pytest

from tests.peers.recording import plain
from tests.peers.replay import outcome
from tests.peers.sample import SIZE, name_of, read

SAMPLE = {name_of(text).removeprefix("org.apache.kafka.streams."): text for text in read()}


@pytest.mark.parametrize("test", SAMPLE)
def test_agrees(test: str) -> None:
    found = outcome(SAMPLE[test])
    assert (found.kind, found.reason) == ("agrees", "")
    assert found.compared


def test_is_a_hundred() -> None:
    assert len(SAMPLE) == SIZE
    assert len({test.partition("#")[0] for test in SAMPLE}) > 30


def test_a_difference_is_told() -> None:
    """A record less is found: a comparison that nothing can fail would agree."""
    told = json.loads(next(text for text in SAMPLE.values() if b'"sent":"output"' in text))
    sent = next(event for event in told["events"] if event.get("sent") == "output")
    told["events"].remove(sent)
    found = outcome(json.dumps(told))
    assert found.kind == "differs"
    assert repr(plain(sent["record"][0])) in found.reason
