"""Who takes part, in the order in which they run: Hindstream first, since the others' answers are held against its."""

from benchmarks.contestants.contestant import Contestant
from benchmarks.contestants.duckdb import DuckDB
from benchmarks.contestants.floor import Floor
from benchmarks.contestants.hindstream import Hindstream, HindstreamLocal, HindstreamSession
from benchmarks.contestants.kafka_streams import KafkaStreams
from benchmarks.contestants.kafka_streams_broker import KafkaStreamsBroker
from benchmarks.contestants.polars import Polars
from benchmarks.contestants.quix import Quix
from benchmarks.contestants.spark_batch import SparkBatch, SparkBatchTimed
from benchmarks.contestants.spark_streaming import SparkStreaming

CONTESTANTS: tuple[Contestant, ...] = (
    Hindstream(),
    HindstreamLocal(),
    HindstreamSession(),
    Floor(),
    KafkaStreams(),
    KafkaStreamsBroker(),
    Quix(),
    DuckDB(),
    Polars(),
    SparkBatch(),
    SparkBatchTimed(),
    SparkStreaming(),
)
