"""One run of a job: a plan, what its tasks staged, an audit, a commit.

Begin with `plan`, with `planned_tasks` and `sink_partitions`; then `stage`, `audit` and `commit`. `takeover` plans a
job's first commit from a live application's state.
"""
