"""The fifth phase: shows readers what was committed.

usage: spark-submit spark_jobs/publish.py --job FILE.py:NAME [--SETTING VALUE ...]
"""

from __future__ import annotations

from hindstream.spark.phases.publish import main

if __name__ == "__main__":
    main()
