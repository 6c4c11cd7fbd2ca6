"""The demo in Kafka: its topics there, and its answer published there.

`docker-compose.yml` runs it so. Partitions, order and timestamps are those of ``hindstream demo``, hence all results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hindstream import AvroSerde, JsonSerde, KafkaTopic, StringSerde
from hindstream.demo import DELAYS, FLIGHTS, WEATHER, data
from hindstream.demo.job import HOUR, job
from hindstream.kafka.cluster import Cluster
from hindstream.kafka.producer import outgoing, produce, transaction, transactional_producer
from statelib.serdes.windowed import TimeWindowedSerde
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from hindstream import Job
    from statelib.serdes.schema_source import SchemaSource
    from statelib.settings.settings import Settings

_FOR_EVER = {"retention.ms": "-1"}
"""The records are of 2013."""

_TRANSACTION_SECONDS = 600

_DELAYS_SCHEMA = """
{
  "type": "record", "name": "DelaysOfAnHour", "namespace": "hindstream.demo",
  "fields": [
    {"name": "flights", "type": "long"},
    {"name": "cancelled", "type": "long"},
    {"name": "mean_delay", "type": ["null", "double"], "doc": "minutes; null: all were cancelled"},
    {"name": "max_delay", "type": ["null", "int"], "doc": "the same"},
    {"name": "mean_wind", "type": ["null", "double"], "doc": "miles an hour; null: no weather is known"},
    {"name": "max_wind", "type": ["null", "double"], "doc": "the same"}
  ]
}
"""


def topics() -> tuple[KafkaTopic, ...]:
    """What is to be archived: values are JSON, keys strings."""
    values = {FLIGHTS: data.FLIGHT_FIELDS, WEATHER: data.WEATHER_FIELDS}
    return tuple(
        KafkaTopic(name, key=StringSerde(), value=JsonSerde(pa.struct(fields))) for name, fields in values.items()
    )


def published_job(registry: SchemaSource) -> Job:
    """The demo's job, whose delays by hour go to a topic of Kafka too, in Avro.

    Args:
        registry: Where the values' schema is registered.
    """
    value = AvroSerde(_DELAYS_SCHEMA, registry=registry, subject=f"{DELAYS}-value", register=True)
    return replace(job(), kafka_sinks=(KafkaTopic(DELAYS, TimeWindowedSerde.of(StringSerde(), HOUR), value),))


def send_topics(settings: Settings) -> dict[str, int]:
    """Creates the topics in Kafka, and sends the records of those that are empty, each in one transaction.

    Args:
        settings: ``kafka`` of these says where.

    Returns:
        How many records were sent, by topic.

    Raises:
        ConfigurationError: The data is not installed; or a topic is there with other partitions or retention.
        RetryableError: The cluster did not answer.
    """
    cluster = Cluster(settings)
    sent = {topic.name: _send(topic, cluster) for topic in topics()}
    cluster.ensure_topic(DELAYS, data.PARTITIONS, _FOR_EVER)
    return sent


def _send(topic: KafkaTopic, cluster: Cluster) -> int:
    cluster.ensure_topic(topic.name, data.PARTITIONS, _FOR_EVER)
    first = (next(cluster.messages(topic.name, partition), None) for partition in range(data.PARTITIONS))
    if any(message is not None for message in first):
        return 0
    records = data.RECORDS[topic.name]()
    key, value = (records[name].combine_chunks() for name in ("key", "value"))
    keys, values = topic.key.serialize(key), topic.value.serialize(value)
    partitions = partition_for(keys, data.PARTITIONS).tolist()
    properties = {**cluster.properties, "transaction.timeout.ms": str(_TRANSACTION_SECONDS * 1000)}
    with cluster.errors(topic=topic.name):
        producer = transactional_producer(properties, f"hindstream-demo-{topic.name}")
        with transaction(producer):
            for partition, record in zip(partitions, outgoing(keys, values, records["timestamp"]), strict=True):
                produce(producer, topic.name, partition, record)
    return len(keys)
