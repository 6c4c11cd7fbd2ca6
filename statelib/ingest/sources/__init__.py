"""Files of a lake: found by path, pattern or URL or in a Delta table, opened, and what their names tell of a topic.

- `files`: what is known of a file before it is read; `find`: the files of a source; `delta_tables`: of a table;
- `layouts`: names of Kafka Connect and of Aiven's connectors.

Begin with `find`.
"""
