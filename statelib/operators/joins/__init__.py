"""Joins of streams and tables: a room for each kind.

Begin with `stream_stream`, `stream_table`, `table_table` or `foreign_key`.
"""
