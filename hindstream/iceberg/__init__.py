"""Sinks that are published to tables of Iceberg catalogs as well: which records a table has, and lacks.

Begin with `publish`.
"""
