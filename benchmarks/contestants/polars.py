"""Polars, embedded."""

from benchmarks.contestants.script import Script
from benchmarks.works import WORKS


class Polars(Script):
    """A query over the files, without state from which a next run could go on."""

    name = "polars"
    title = "polars"
    settings = (
        "one lazy query a partition, streaming engine, two threads, Parquet with zstd; stream time is cum_max; the "
        "same records, in W2 to W4 in another order; no state: an hour more means to read all again"
    )
    agrees = tuple(WORKS)
    script = "polars_works.py"
