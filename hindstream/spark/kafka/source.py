"""Spark's Kafka source: the connector, which pyspark does not bring along, and ranges of offsets as a frame."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import PySparkException

from hindstream.kafka.properties import java_properties
from statelib.errors.kinds import ConfigurationError

from py4j.protocol import Py4JError  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from statelib.settings.settings import Settings

_log = logging.getLogger(__name__)

_JARS = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.1",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
"""All that the connector needs beside what Spark has; each is fetched by itself, whatever its own list says."""

_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

_TASK_RECORDS = 4_000_000
"""What one Spark task reads, at most: one that fails is repeated."""


def ensure_connector(spark: SparkSession) -> None:
    """Makes the format ``kafka`` known to a session; nothing is fetched where it is (``spark.jars``, a cluster's own).

    It comes from the Maven repositories that Spark knows (``spark.jars.ivySettings``), once a host.

    Raises:
        ConfigurationError: It cannot be fetched.
    """
    if _is_there(spark):
        return
    _log.info("Spark's Kafka connector is fetched, once")
    for jar in _JARS:
        try:
            spark.sql(f"ADD JAR ivy://{jar}?transitive=false")
        except (Py4JError, PySparkException) as error:
            step = "put the jars on the machine, and name them: --set spark_conf.spark.jars=FILE,FILE,..."
            what = f"Spark's Kafka connector cannot be fetched: {', '.join(_JARS)}"
            raise ConfigurationError(what, jar=jar, setting="spark_conf", next_step=step) from error


def _is_there(spark: SparkSession) -> bool:
    java = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no public way to Java
    try:
        java.org.apache.spark.util.Utils.classForName(_PROVIDER, False, False)  # type: ignore[union-attr]
    except Py4JError:
        return False
    return True


def kafka_frame(
    spark: SparkSession, topic: str, ranges: Mapping[int, tuple[int, int]], settings: Settings
) -> DataFrame:
    """Records of a topic; each partition of the frame is a part of one range, in the order of offsets.

    Args:
        spark: A session with the connector.
        topic: The topic.
        ranges: By partition, the first offset and the one after the last.
        settings: ``kafka``, and ``on_lost_record``: whether Spark fails where Kafka has deleted some of it.

    Returns:
        Columns key, value (binary), topic, partition, offset, timestamp, timestampType, headers. Records of aborted
        transactions are not among them.
    """
    options = {
        "assign": json.dumps({topic: list(ranges)}),
        "startingOffsets": json.dumps({topic: {str(partition): start for partition, (start, _) in ranges.items()}}),
        "endingOffsets": json.dumps({topic: {str(partition): end for partition, (_, end) in ranges.items()}}),
        "includeHeaders": "true",
        "failOnDataLoss": str(settings.on_lost_record == "fail").lower(),
        "maxRecordsPerPartition": str(_TASK_RECORDS),
        "kafka.isolation.level": "read_committed",
    }
    properties = {f"kafka.{name}": value for name, value in java_properties(settings).items()}
    return spark.read.format("kafka").options(**(properties | options)).load()
