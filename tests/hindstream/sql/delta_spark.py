"""Spark with Delta's package, in a process of its own: ``python -m tests.hindstream.sql.delta_spark JARS FOLDER``.

Its catalog is a Hive metastore with a database in the folder (Derby), which the process has for itself.

Each line that it reads is a statement as a JSON string; it answers with the rows, as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(jars: str, folder: str) -> None:
    """Answers until there are no more statements."""
    database = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(str(jar) for jar in sorted(Path(jars).iterdir())))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.catalogImplementation", "hive")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", database)
        .config("spark.sql.warehouse.dir", f"{folder}/tables")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")  # for its log
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    for line in sys.stdin:
        rows = [row.asDict(recursive=True) for row in spark.sql(json.loads(line)).collect()]
        sys.stdout.write(json.dumps(rows) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
