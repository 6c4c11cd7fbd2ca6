"""Who takes part, in the order in which they run."""

from benchmarks.nexmark.contestants.contestant import Contestant
from benchmarks.nexmark.contestants.flink import Flink, FlinkRocksDb
from benchmarks.nexmark.contestants.hindstream import Hindstream, HindstreamOnSpark
from benchmarks.nexmark.contestants.kafka_streams import KafkaStreams
from benchmarks.nexmark.contestants.script import DuckDB, Polars, SparkBatch

CONTESTANTS: tuple[Contestant, ...] = (
    Hindstream(),
    HindstreamOnSpark(),
    DuckDB(),
    SparkBatch(),
    Polars(),
    KafkaStreams(),
    Flink(),
    FlinkRocksDb(),
)
