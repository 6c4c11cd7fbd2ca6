"""The last phase: writes the pages of the run and of the job.

usage: spark-submit spark_jobs/report.py --job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]
"""

from __future__ import annotations

from hindstream.spark.phases.report import main

if __name__ == "__main__":
    main()
