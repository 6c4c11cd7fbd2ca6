"""What others than Hindstream read of a job's sinks, in SQL.

Begin with `views`, which says what is read of which topic; `dialects` says how DuckDB and Spark write that.
"""
