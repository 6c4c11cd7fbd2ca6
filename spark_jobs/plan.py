"""The first phase: fixes what the run will do.

usage: spark-submit spark_jobs/plan.py --job FILE.py:NAME [--until TIME] [--SETTING VALUE ...]
"""

from __future__ import annotations

from hindstream.spark.phases.plan import main

if __name__ == "__main__":
    main()
