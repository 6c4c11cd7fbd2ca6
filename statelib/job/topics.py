"""Topics that are copied into archives, wherever they come from: a Kafka cluster, or files of a lake."""

from __future__ import annotations

from statelib.errors.kinds import ConfigurationError
from statelib.job.kafka_topic import KafkaTopic
from statelib.job.lake_topic import LakeTopic
from statelib.job.user_code import load_attribute

Topic = KafkaTopic | LakeTopic


def load_topics(reference: str) -> tuple[Topic, ...]:
    """Loads the topics at ``package.module:attribute`` or ``path/to/file.py:attribute``.

    The attribute is a `KafkaTopic` or `LakeTopic`, several of them, or a function without parameters that returns them.
    Without ``:attribute`` it is ``topics``.

    Raises:
        ConfigurationError: There is no such module, file or attribute, or it is no topic.
    """
    found = load_attribute(reference, "topics")
    topics = (found,) if isinstance(found, Topic) else tuple(found) if isinstance(found, (list, tuple)) else ()
    if not topics or not all(isinstance(topic, Topic) for topic in topics):
        step = "name a list of hindstream.KafkaTopic or LakeTopic, as FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError("these are no topics", topics=reference, next_step=step)
    return topics
