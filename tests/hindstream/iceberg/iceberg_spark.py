"""Spark with Iceberg's package, in a process: ``python -m tests.hindstream.iceberg.iceberg_spark JARS LAKE``.

Its catalog ``lake`` is that of `tests.ingest.iceberg.catalog_in`. Each line that it reads is a statement as a JSON
string; it answers with the rows, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(jars: str, lake: str) -> None:
    """Answers until there are no more statements."""
    catalog = "spark.sql.catalog.lake"
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(str(jar) for jar in sorted(Path(jars).iterdir())))
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{catalog}.type", "jdbc")
        .config(f"{catalog}.uri", f"jdbc:sqlite:{lake}/catalog.db")
        .config(f"{catalog}.warehouse", f"file://{lake}/tables")
        .config(f"{catalog}.jdbc.schema-version", "V1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    for line in sys.stdin:
        rows = [row.asDict(recursive=True) for row in spark.sql(json.loads(line)).collect()]
        sys.stdout.write(json.dumps(rows, default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
