"""A real Airflow with the plug-in, looked at by HTTP and with a real browser."""

HIDDEN = "hidden"
"""A DAG that nobody may read."""
