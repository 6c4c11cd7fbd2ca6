from __future__ import annotations

import pytest

from hindstream.kafka.published_position import Begun, PublishedPosition
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

POSITION = b'{"format":1,"offset":117,"rollback":3}'
BEGUN = b'{"format":1,"topic":"cluster/topic"}'


def test_golden_bytes():
    assert PublishedPosition(offset=117, rollback=3).encode() == POSITION
    assert PublishedPosition.decode(POSITION) == PublishedPosition(offset=117, rollback=3)
    assert Begun(topic="cluster/topic").encode() == BEGUN
    assert Begun.decode(BEGUN) == Begun(topic="cluster/topic")
    assert (PublishedPosition.KEY, Begun.KEY) == (b"position", b"begun")


@pytest.mark.parametrize(
    "value",
    [b"", b"7", b"[]", b"{}", b'{"format":1}', b'{"format":1,"offset":"x","rollback":0}', b'{"offset":1,"rollback":0}'],
)
def test_what_is_no_position(value):
    with pytest.raises(CorruptedDataError, match=r"cannot be read \(topic positions, partition 2\)"):
        PublishedPosition.decode(value, topic="positions", partition=2)


def test_a_newer_format_is_refused():
    with pytest.raises(ConfigurationError, match="has format 2, this Hindstream knows 1"):
        PublishedPosition.decode(b'{"format":2,"offset":117,"rollback":3,"more":1}')
