"""What stands around a record in a row: its key, offset and headers as Kafka's tools write them, changes of a database.

Begin with `placed`, which names the columns that all of them give.
"""
