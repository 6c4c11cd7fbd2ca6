"""The fourth phase: makes the audited run valid.

usage: spark-submit spark_jobs/commit.py --job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]
"""

from __future__ import annotations

from hindstream.spark.phases.commit import main

if __name__ == "__main__":
    main()
