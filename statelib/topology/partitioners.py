"""What chooses the partition of a record in place of its key (Kafka's ``StreamPartitioner``).

A partitioner is a mapper that gives whole numbers, from 0 up to the number of partitions. Beside the record's columns
it sees `NUM_PARTITIONS`. Null stands for Kafka's default partitioner. If it gives lists, a record goes to each of the
partitions in its list, and with an empty list to none (KIP-837).
"""

NUM_PARTITIONS = "num_partitions"
"""The column of how many partitions the topic has, int32."""
