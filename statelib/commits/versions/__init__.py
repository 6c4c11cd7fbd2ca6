"""Versions of a job: forks of its commits, which of them its readers read, and ways back.

Begin with `fork`; `statelib.commits.forks` says which there are. `trials` plans what a trial replays, and `drop_fork`
ends a fork. `promotion` moves the readers (`publishers`: who writes to Kafka and to Iceberg tables then),
`sink_history` says whose records a sink has, and `rollback` takes commits back.
"""
