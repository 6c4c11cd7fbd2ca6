"""All that talks to a Kafka cluster: topics that are archived and published, hand-over, take-over and switch-over.

What Spark does of it is in `hindstream.spark.kafka`. Begin with `cluster`, or with `handover`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from hindstream.lazy import offers
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from hindstream.kafka.handover import HandedOver, hand_over
    from hindstream.kafka.registry import SchemaRegistry
    from hindstream.spark.kafka.archive import Copied, archive_topics
    from hindstream.spark.kafka.switch_over import SwitchedOver, switch_over
    from hindstream.spark.kafka.takeover import TookOver, take_over
    from statelib.job.handover import Handover
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.job.switch_over import SwitchOver

__all__ = [
    "Copied",
    "HandedOver",
    "Handover",
    "KafkaTopic",
    "SchemaRegistry",
    "SwitchOver",
    "SwitchedOver",
    "TookOver",
    "archive_topics",
    "hand_over",
    "switch_over",
    "take_over",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = offers(
        __name__,
        {
            "Copied": "hindstream.spark.kafka.archive:Copied",
            "HandedOver": "hindstream.kafka.handover:HandedOver",
            "Handover": "statelib.job.handover:Handover",
            "KafkaTopic": "statelib.job.kafka_topic:KafkaTopic",
            "SchemaRegistry": "hindstream.kafka.registry:SchemaRegistry",
            "SwitchOver": "statelib.job.switch_over:SwitchOver",
            "SwitchedOver": "hindstream.spark.kafka.switch_over:SwitchedOver",
            "TookOver": "hindstream.spark.kafka.takeover:TookOver",
            "archive_topics": "hindstream.spark.kafka.archive:archive_topics",
            "hand_over": "hindstream.kafka.handover:hand_over",
            "switch_over": "hindstream.spark.kafka.switch_over:switch_over",
            "take_over": "hindstream.spark.kafka.takeover:take_over",
        },
    )

if find_spec("confluent_kafka") is None:
    raise ConfigurationError(
        "the client of Kafka is not installed", package="confluent-kafka", next_step="pip install 'hindstream[kafka]'"
    )
