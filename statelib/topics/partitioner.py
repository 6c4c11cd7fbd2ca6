"""Kafka's default partitioner: murmur2 of the serialised key, modulo the number of partitions.

Source: ``BuiltInPartitioner.partitionForKey`` and ``Utils.murmur2`` of kafka-clients. Windowed keys are partitioned by
the plain key, without the window (``WindowedStreamPartitioner``).
"""

from __future__ import annotations
