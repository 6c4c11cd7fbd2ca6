from __future__ import annotations

import base64
import struct

import pytest

from hindstream.kafka.offset_metadata import metadata_of, partition_time_ms

GOLDEN = "AgAAAAAAFUjI"
"""As Kafka Streams 4.3 has written it for 1,394,888 ms, but for what comes behind."""


def test_golden_text() -> None:
    assert partition_time_ms(GOLDEN) == 1_394_888
    assert partition_time_ms(GOLDEN + "AAAAAA==") == 1_394_888
    assert partition_time_ms(GOLDEN + "\x00\u1234") == 1_394_888
    assert partition_time_ms(GOLDEN.encode() + b"\xa7") == 1_394_888


@pytest.mark.parametrize("version", [1, 2])
def test_versions(version: int) -> None:
    assert partition_time_ms(base64.b64encode(struct.pack(">Bq", version, 7)).decode()) == 7


@pytest.mark.parametrize("metadata", [None, "", "my own", "AgAA", "AwAAAAAAFUjI", "Av//////////", b"\xff" * 12])
def test_what_is_no_time(metadata: str | bytes | None) -> None:
    """Nothing; too short; of another version; -1, which means none yet."""
    assert partition_time_ms(metadata) is None


def test_what_is_no_text() -> None:
    class Place:
        @property
        def metadata(self) -> str:
            return b"AgAAAAAAFUjI\xa7".decode()

    assert metadata_of(Place()) == b"AgAAAAAAFUjI\xa7"  # type: ignore[arg-type]
