"""Topic archives: Kafka's topics at rest as Delta tables, read in slices and appended to exactly once.

- A table: `version` to read, `archive` to write, over `delta_log`, `file_index`, `committing`, `actions`,
  `transactions`; what others do to it: `other_writers`, `interleaved`, `orphaned_files`;
- its files: `schema`, `schema_changes`, `files`, `writer`, `encodings`, `reader`; what the footer tells: `footer`,
  `sealed_statistics`, `missing_counts`, `repeated`;
- where a run ends: `slices`, `future_records`, `time_leaps`;
- files made anew: `merging`, `size_tiers`, `cleaner`, `cleaning`;
- records from elsewhere: `append`, `partitioner`, `kafka_copy`.

Begin with `archive`.
"""
