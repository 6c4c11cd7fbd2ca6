"""DuckDB, embedded."""

from benchmarks.contestants.script import Script
from benchmarks.works import WORKS


class DuckDB(Script):
    """A query over the files, without state from which a next run could go on."""

    name = "duckdb"
    title = "DuckDB"
    settings = (
        "one SQL query a work, two threads, Parquet with zstd; stream time is a running maximum over each partition, "
        "but in W2, which needs none and keeps no order of rows; "
        "the same records in another order; no state: an hour more means to read all again"
    )
    agrees = tuple(WORKS)
    script = "duckdb_works.py"
