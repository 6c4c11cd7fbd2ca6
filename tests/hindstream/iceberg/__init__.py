"""Sinks in tables of Iceberg catalogs, as their readers have them."""
