"""All phases of one slice.

usage: spark-submit spark_jobs/pipeline.py --job FILE.py:NAME [--until TIME] [--SETTING VALUE ...]
"""

from __future__ import annotations

from hindstream.spark.phases.pipeline import main

if __name__ == "__main__":
    main()
