"""Files of a lake: found by path, pattern or URL or in a table, opened, and what their names tell of a topic.

- `files`: what is known of a file before it is read; `find`: the files of a source; `opening`: opens them;
- `tables`: which sources are tables; `delta_tables`; `iceberg_tables`, with what has come since (`iceberg_history`) and
  what has been deleted (`iceberg_deletes`);
- `queries`: what is known of a query, which Spark runs;
- `layouts`: names of Kafka Connect and of Aiven's connectors; `folders`: fields that folders tell.

Begin with `find`.
"""
