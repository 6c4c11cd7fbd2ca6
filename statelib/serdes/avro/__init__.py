"""Avro: values of a schema or of a schema registry, decoded a column at a time.

Begin with `serde`; `program` and `kernel` decode.
"""
