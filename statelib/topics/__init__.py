"""Topic archives: Kafka's topics at rest as Delta tables, read in slices and appended to exactly once.

- A table: `version` to read, `archive` to write, with `committing` and `actions`; its log is in `delta`; what others do
  to it: `other_writers`, `orphaned_files`;
- its files: `files` says which, `parquet` how they are written and read;
- where a run ends: `slices`, `future_records`, `time_leaps`;
- files made anew: `merging`, `size_tiers`, `cleaner`, `cleaning`;
- records from elsewhere: `append`, `partitioner`, `kafka_copy`.

Begin with `archive`.
"""
