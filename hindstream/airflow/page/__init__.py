"""What Airflow's API server shows beside a DAG: the reports and Data Docs of its jobs, read from the warehouse.

Begin with `app`.
"""
