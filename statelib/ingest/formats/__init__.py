"""The formats of a lake's files: Parquet, CSV, JSON and Avro, each plain or compressed, all read as columns.

Begin with `read`.
"""
