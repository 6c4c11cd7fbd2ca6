"""What would else be done when it is first needed: Spark's connector to Kafka fetched, kernels compiled."""

from __future__ import annotations

import os
import tempfile

from hindstream import load_settings
from hindstream.demo.run import run_demo
from hindstream.spark import spark_session
from hindstream.spark.kafka.source import ensure_connector

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run_demo("demo")
        ensure_connector(spark_session(load_settings({})))
