"""The command line: a thin layer over `hindstream.spark`, `hindstream.airflow` and `statelib`. Begin with `main`."""
