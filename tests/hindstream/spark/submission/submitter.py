"""Submits the replay of a run, or finds it again; prints the application: arguments FOLDER MASTER REST_PORT [STEP].

The port is that of the server which tells what becomes of applications: a standalone master's, YARN's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import pyspark

from hindstream.spark.submission import driver
from hindstream.spark.submission.cluster import Cluster
from hindstream.spark.submission.follow import Submitted
from statelib.errors.fault_points import observed
from statelib.job.job import load_job
from tests.faults.killer import killer
from tests.hindstream.spark.orders import make_settings

JOB = """
import time
from pathlib import Path
import pyarrow.compute as pc
from statelib import Job, StreamsBuilder

WAIT = Path({wait!r})

def patient(columns):
    while WAIT.exists() and "customer-0" in columns.column("key").to_pylist():
        time.sleep(0.1)
    return pc.is_valid(columns.column("key"))

builder = StreamsBuilder("orders")
builder.stream("orders").filter(patient).to("all-orders")
job = Job("orders", builder.build())
"""
"""One of its three tasks waits as long as a file is there."""

OPTIONS = {
    "driver_memory": "600m",
    "executor_memory": "600m",
    "executor_cores": 1,
    "conf": {
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
    },
}

ON_KUBERNETES: dict[str, object] = {
    **OPTIONS,
    "executor_cores": 3,
    "application": f"local://{driver.__file__}",
    "conf": {
        **cast("dict[str, str]", OPTIONS["conf"]),
        "spark.executor.instances": "1",
        "spark.kubernetes.authenticate.driver.serviceAccountName": "hindstream-driver",
        "spark.kubernetes.authenticate.executor.serviceAccountName": "hindstream-executor",
        "spark.kubernetes.container.image": "none",
        "spark.kubernetes.namespace": "replays",
    },
}
"""In the namespace of docs/kubernetes.md."""

AT_ONCE = """#!{python}
import subprocess, sys
arguments = sys.argv[sys.argv.index("--job"):]
arguments[1] = {job!r} or arguments[1]
code = subprocess.run([sys.executable, {driver!r}, *arguments]).returncode
number = "0000" if code == 0 else "0001"
print("INFO ClientEndpoint: Driver successfully submitted as driver-20261129174447-" + number)
"""


def at_once(folder: Path, job: str = "") -> Path:
    """A program in the place of spark-submit that does the driver's work itself, before it tells the application.

    Args:
        folder: Where to put it.
        job: Where the job is on the driver's host; nothing: where it is here.
    """
    program = folder / "submit"
    program.write_text(AT_ONCE.format(python=sys.executable, driver=driver.__file__, job=job))
    program.chmod(0o755)
    return program


def on_yarn(folder: Path) -> dict[str, object]:
    """The options for YARN, whose hosts have Python and Spark where this machine has them."""
    conf = {
        **cast("dict[str, str]", OPTIONS["conf"]),
        "spark.executor.instances": "1",
        "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent / 'jars'}/*",
        "spark.yarn.stagingDir": folder.as_uri(),
    }
    return {**OPTIONS, "executor_cores": 3, "env_vars": {"PYSPARK_PYTHON": sys.executable}, "conf": conf}


def submitted(folder: Path, master: str, rest_port: int) -> Submitted:
    """The replay of the newest run of the job in a folder."""
    options = ON_KUBERNETES if master.startswith("k8s://") else on_yarn(folder) if master == "yarn" else OPTIONS
    reference = f"{folder / 'job.py'}:job"
    spark = Path(sys.executable).with_name("spark-submit")
    manager = f"http://127.0.0.1:{rest_port}"
    cluster = Cluster(master, "cluster", str(spark), rest_port=rest_port, resource_manager=manager)
    return Submitted(reference, load_job(reference), make_settings(folder), None, "replay", cluster, options)


def main(folder: str, master: str, rest_port: str, kill_at: str = "") -> None:
    with observed(killer((kill_at, 1) if kill_at else None)):
        print(submitted(Path(folder), master, int(rest_port)).attach_or_submit())


if __name__ == "__main__":
    main(*sys.argv[1:])
