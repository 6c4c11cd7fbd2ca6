"""The second phase: replays the planned slice and stages the result.

usage: spark-submit spark_jobs/replay.py --job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]
"""

from __future__ import annotations

from hindstream.spark.phases.replay import main

if __name__ == "__main__":
    main()
