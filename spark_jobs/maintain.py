"""The sixth phase: expires old state and merges small files.

usage: spark-submit spark_jobs/maintain.py --job FILE.py:NAME [--SETTING VALUE ...]
"""

from __future__ import annotations

from hindstream.spark.phases.maintain import main

if __name__ == "__main__":
    main()
