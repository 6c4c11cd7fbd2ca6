"""Joins of streams and tables: a room for each kind.

The kinds are `stream_stream`, `stream_table`, `table_table` and `foreign_key`.
"""
