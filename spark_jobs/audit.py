"""The third phase: checks what was staged.

usage: spark-submit spark_jobs/audit.py --job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]
"""

from __future__ import annotations

from hindstream.spark.phases.audit import main

if __name__ == "__main__":
    main()
