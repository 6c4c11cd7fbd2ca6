from __future__ import annotations

import numpy as np
import pyarrow as pa

from statelib.operators.joins.foreign_key.murmur3 import hash128


def test_murmur3_is_that_of_kafka_streams() -> None:
    """Kafka's own vectors (``Murmur3Test``), whose seed is 123."""
    rows = {
        b"21": (5857341059704281894, -5288187638297930763),
        b"foobar": (-351361463397418609, 8959716011862540668),
        b"a-little-bit-long-string": (8836256500583638442, -198172363548498523),
        b"a-little-bit-longer-string": (1838346159335108511, 8794688210320490705),
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": (-4024021876037397259, -1482317706335141238),
        b"abc": (1489494923063836066, -5440978547625122829),
    }
    hashes = hash128(pa.array([*rows], pa.binary()), seed=123)
    assert hashes.astype(np.uint64).view(np.int64).tolist() == [list(expected) for expected in rows.values()]
