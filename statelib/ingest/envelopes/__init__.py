"""What stands around a record in a row: its key, offset and headers as Kafka's tools write them, changes of a database.

- `connect`, `aiven`, `kcat`: a layout each; `debezium`: changes of a database;
- `contents`: keys and values that are bytes, or JSON; `placed`: where a record was in Kafka.

Begin with `placed`, which names the columns that all of them give.
"""
