"""Aggregations by key: of a stream's records and of a table's changes.

Kafka's ``KStreamAggregate`` and ``KTableAggregate``.

Begin with `definition`, then `operator`. What a function keeps while a batch runs is in
`accumulators`, what it stores in `function_states`.
"""
