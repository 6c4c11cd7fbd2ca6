from __future__ import annotations

import pytest

from hindstream.kafka.published_position import Begun, PublishedPosition
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

POSITION = b'{"format":2,"job":"clicks","made_at_ms":null,"offset":117,"rollback":3}'
OF_FORK = b'{"format":2,"job":"new","made_at_ms":9,"offset":117,"rollback":3}'
BEGUN = b'{"format":2,"topic":"cluster/topic"}'


def test_golden_bytes():
    for value, job, made_at_ms in ((POSITION, "clicks", None), (OF_FORK, "new", 9)):
        position = PublishedPosition(offset=117, rollback=3, job=job, made_at_ms=made_at_ms)
        assert position.encode() == value
        assert PublishedPosition.decode(value) == position
    assert Begun(topic="cluster/topic").encode() == BEGUN
    assert Begun.decode(BEGUN) == Begun(topic="cluster/topic")
    assert (PublishedPosition.KEY, Begun.KEY) == (b"position", b"begun")


def test_the_first_format_is_read():
    first = PublishedPosition(offset=117, rollback=3)
    assert PublishedPosition.decode(b'{"format":1,"offset":117,"rollback":3}') == first
    assert Begun.decode(b'{"format":1,"topic":"cluster/topic"}') == Begun(topic="cluster/topic")


@pytest.mark.parametrize(
    "value",
    [b"", b"7", b"[]", b"{}", b'{"format":1}', b'{"format":1,"offset":"x","rollback":0}', b'{"offset":1,"rollback":0}'],
)
def test_what_is_no_position(value):
    with pytest.raises(CorruptedDataError, match=r"cannot be read \(topic positions, partition 2\)"):
        PublishedPosition.decode(value, topic="positions", partition=2)


def test_a_newer_format_is_refused():
    with pytest.raises(ConfigurationError, match="has format 3, this Hindstream knows up to 2"):
        PublishedPosition.decode(b'{"format":3,"offset":117,"rollback":3,"more":1}')
