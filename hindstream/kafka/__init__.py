"""All that talks to a Kafka cluster: topics are archived from it."""

from importlib.util import find_spec

from statelib.errors.kinds import ConfigurationError

if find_spec("confluent_kafka") is None:
    raise ConfigurationError(
        "the client of Kafka is not installed", package="confluent-kafka", next_step="pip install 'hindstream[kafka]'"
    )
