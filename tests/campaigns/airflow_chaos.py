"""Slices of a real Airflow, of which tasks and servers are killed at random: nothing lost, doubled or different.

A DAG with a slice a day catches up, with a scheduler (LocalExecutor), a triggerer, a DAG processor and an API server,
with ``--celery`` also a broker and two workers, each a process of its own that is started again when it has died.
Meanwhile one of them, a process of a task, or with ``--spark`` one of a driver in a cluster, is killed once a slice, on
average: whenever so many tasks are done, so that a slow machine has as many deaths as a quick one, and gets to its end.
Then each run is green or says why, and the sinks have what the same slices give in one process.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, cast

from hindstream.airflow.replay import PHASES
from hindstream.runs import open_warehouse
from hindstream.spark.phases.pipeline import run_slice
from hindstream.spark.session.session import quick_start
from statelib.commits import CommitLog, published_through, verify
from statelib.commits.archives import open_archive
from statelib.job.job import load_job
from tests.campaigns.airflow_servers import QUICK, REDIS, Server, processes_below, with_celery, with_local_executor
from tests.hindstream.airflow.airflow_environ import AIRFLOW, airflow_environ
from tests.hindstream.airflow.test_spark_submit import environment
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders
from tests.hindstream.spark.orders_job import SINK
from tests.hindstream.spark.submission.submitter import OPTIONS
from tests.postgres import PROGRAMS, USER, has_postgres, postgres
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.settings.settings import Settings
    from tests.spark_cluster import SparkCluster

DAG_ID = "chaos"
_HOST = "127.0.0.2"
_TELLS_SECONDS = 60
_TASK_SECONDS = 8
_TASK_SECONDS_ON_SPARK = 20
_CONF = cast("dict[str, str]", OPTIONS["conf"])
_ON_SPARK = OPTIONS | {"executor_cores": 2, "conf": _CONF | quick_start("driver") | quick_start("executor")}
"""Starts of Java take the longest part of so small slices: quick ones, and one executor for what the driver leaves."""

_DAG = """
from datetime import UTC, datetime, timedelta
from hindstream.airflow import replay_dag  # Airflow

dag = replay_dag(
    "{job}:job", dag_id="{dag_id}", task_per="{task_per}", schedule="@daily", catchup={catchup}, max_active_runs=2,
    start_date=datetime(1970, 1, 1, tzinfo=UTC), end_date=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days={last}),
    default_args={{"retries": 50, "retry_delay": timedelta(seconds=1)}}, **{given!r},
)
"""


@dataclass
class Chaos:
    """Who is killed, and how often that was.

    Attributes:
        chance: Decides.
        servers: Those that may be.
        worker: The process of a worker of Spark, which runs drivers; None: there is no cluster.
        mean_tasks: Done between two deaths.
        within_s: After the last of them, somebody dies: the longest time that a task is at work.
    """

    chance: random.Random
    servers: Sequence[Server]
    worker: int | None
    mean_tasks: float
    within_s: float
    killed: Counter[str] = field(default_factory=Counter)
    _after: float = 0
    _at: float | None = None

    def strike(self, done: int) -> None:
        """Kills somebody, if so many tasks are done that it is time."""
        if self._at is None and done >= self._after:
            self._at = time.monotonic() + self.chance.uniform(0, self.within_s)
        if self._at is None or time.monotonic() < self._at or not self._kill():
            return
        self._at, self._after = None, done + self.chance.expovariate(1 / self.mean_tasks)

    def _kill(self) -> bool:
        """Whether there was somebody."""
        above = {
            "process of a task": lambda: [pid for server in self.servers for pid in server.tasks()],
            "process of a driver": lambda: [] if self.worker is None else processes_below(self.worker),
        }
        wanted = self.chance.choice([*above, "process of a task", "server"])
        below = above[wanted]() if wanted in above else []
        if below:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(below), signal.SIGKILL)
            self.killed[wanted] += 1
            return True
        if wanted != "server":
            return False
        server = self.chance.choice(self.servers)
        server.kill()
        self.killed[server.name] += 1
        return True


@dataclass
class Runs:
    """What Airflow's database says of the runs of the DAG."""

    address: str | None
    file: Path
    kind: str

    def states(self) -> Counter[str]:
        """How many runs there are in each state; nothing while nobody can tell."""
        return self._counted("dag_run", f"dag_id = '{DAG_ID}' and run_type = '{self.kind}'")

    def tasks_done(self) -> int:
        """How many tasks have succeeded."""
        return self._counted("task_instance", f"dag_id = '{DAG_ID}'")["success"]

    def _counted(self, table: str, of: str) -> Counter[str]:
        asked = f"select state, count(*) from {table} where {of} group by state"
        if self.address is not None:
            from sqlalchemy import create_engine, text  # noqa: PLC0415 - Airflow's

            engine = create_engine(self.address)
            with suppress(Exception), engine.connect() as connection:
                return Counter({str(state): int(count) for state, count in connection.execute(text(asked))})
            return Counter()
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as one:
            return Counter(dict(one.execute(asked).fetchall()))
        return Counter()


def _records(warehouse: str) -> list[tuple[Any, ...]]:
    """All that readers of the sink have, in order."""
    archive = open_archive(open_warehouse(make_settings(Path(warehouse).parent)), SINK)
    return [
        (partition, row["offset"], repr(row["key"]), repr(row["value"]), row["timestamp"])
        for partition in range(archive.partitions)
        for row in archive.reader(partition).read_all().to_pylist()
    ]


def main(arguments: Sequence[str]) -> int:
    """Runs it; 1 if something is lost, doubled or different, or a run is not green."""
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="./dev campaign airflow-chaos", description=__doc__)
    parser.add_argument("--slices", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--task-per", choices=["phase", "run"], default="run")
    parser.add_argument("--deaths", type=float, default=1, help="a slice, on average")
    parser.add_argument("--spark", action="store_true", help="drivers run in a cluster of Spark, a task for each phase")
    parser.add_argument("--backfill", action="store_true", help="by airflow backfill create, not by catchup")
    database = parser.add_mutually_exclusive_group()
    database.add_argument("--sqlite", action="store_true", help="Airflow's database, even where there is a PostgreSQL")
    database.add_argument("--celery", action="store_true", help="CeleryExecutor: needs PostgreSQL and redis-server")
    given = parser.parse_args(arguments)
    if given.celery and (missing := [name for name in (REDIS, *PROGRAMS) if not which(name)]):
        print(f"not on this machine: {', '.join(missing)}")
        return 2
    print(f"--seed {given.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers end with us
    with tempfile.TemporaryDirectory(prefix="airflow-chaos-") as place, ExitStack() as stack:
        folder = Path(place)
        address = None
        if has_postgres() and not given.sqlite:
            address = f"postgresql+psycopg2://{USER}@127.0.0.1:{stack.enter_context(postgres())}/postgres"
        cluster = None
        if given.spark:
            given.task_per = "phase"
            cluster = stack.enter_context(spark_cluster(folder, _HOST, has_rest=True, cores=3))
        code = _campaign(folder, given, address, cluster)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{spent.ru_utime + spent.ru_stime:,.0f} s of processor time; what was below a killed process is not in it")
    return code


def _campaign(folder: Path, given: argparse.Namespace, address: str | None, cluster: SparkCluster | None) -> int:
    home, chaotic, quiet = folder / "airflow", folder / "chaotic", folder / "quiet"
    for of in (chaotic, quiet):
        archive_orders(make_settings(of), orders(20 * given.slices, days=given.slices))
    _write_dag(home, given, make_settings(chaotic), on_spark=cluster is not None)
    environ = airflow_environ(home) | QUICK
    if cluster is not None:
        connected = environment(cluster.url, cluster.rest_port)
        environ |= {name: connected[name] for name in ("AIRFLOW_CONN_SPARK_DEFAULT", "PATH")}
        environ["SPARK_SUBMIT_OPTS"] = _CONF["spark.driver.defaultJavaOptions"]
    if address is not None:
        environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = address
    subprocess.run([AIRFLOW, "db", "migrate"], env=environ, check=True, stdout=subprocess.DEVNULL)
    servers = (with_celery if given.celery else with_local_executor)(home, environ)
    worker = None if cluster is None else cluster.pid(_HOST)
    tasks = len(PHASES) if given.task_per == "phase" else 1
    within_s = _TASK_SECONDS_ON_SPARK if cluster else _TASK_SECONDS
    chaos = Chaos(random.Random(given.seed), servers, worker, tasks / given.deaths, within_s)
    runs, began = Runs(address, home / "airflow.db", "backfill" if given.backfill else "scheduled"), time.monotonic()
    try:
        if given.backfill:
            _backfill(servers, environ, given.slices)
        states = _until_ended(servers, runs, chaos, given.slices)
    finally:
        for server in servers:
            server.end()
    print(f"{given.slices} slices in {time.monotonic() - began:.0f} s, killed {dict(chaos.killed)}: {dict(states)}")
    return _judge(given, chaotic, quiet, states)


def _write_dag(home: Path, given: argparse.Namespace, settings: Settings, *, on_spark: bool) -> None:
    of_dag: dict[str, Any] = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
    if on_spark:
        of_dag |= {"engine": "spark", "mode": "spark-submit", "spark_submit": _ON_SPARK}
    last = given.slices if given.backfill else given.slices - 1  # the run of a schedule comes behind the backfill
    how = {"task_per": given.task_per, "last": last, "catchup": not given.backfill}
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "chaos.py").write_text(_DAG.format(job=JOB_FILE, dag_id=DAG_ID, given=of_dag, **how))


def _until_ended(servers: Sequence[Server], runs: Runs, chaos: Chaos, slices: int) -> Counter[str]:
    """Starts what has died, and lets something die, until all runs have ended."""
    began = told = time.monotonic()
    while True:
        for server in servers:
            server.keep()
        states = runs.states()
        if states["success"] + states["failed"] >= slices:
            return states
        if states["success"]:  # all of them have started once
            chaos.strike(runs.tasks_done())
        if time.monotonic() - told > _TELLS_SECONDS:
            told = time.monotonic()
            print(f"{told - began:.0f} s: {dict(states)}; killed {dict(chaos.killed)}", flush=True)
        time.sleep(0.5)


def _backfill(servers: Sequence[Server], environ: dict[str, str], slices: int) -> None:
    """Asks for it, as soon as Airflow knows the DAG."""
    first = datetime(1970, 1, 1, tzinfo=UTC)
    dates = ["--from-date", f"{first:%F}", "--to-date", f"{first + timedelta(days=slices - 1):%F}"]
    command = [AIRFLOW, "backfill", "create", "--dag-id", DAG_ID, *dates, "--max-active-runs", "2"]
    while True:
        for server in servers:
            server.keep()
        asked = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
        if asked.returncode == 0:
            return
        if "Could not find dag" not in asked.stderr:
            raise RuntimeError(asked.stderr)
        time.sleep(1)


def _judge(given: argparse.Namespace, chaotic: Path, quiet: Path, states: Counter[str]) -> int:
    job = load_job(f"{JOB_FILE}:job")
    calm = make_settings(quiet).model_copy(update={"engine": "local", "data_docs": "failed"})
    for day in range(1, given.slices + 1):
        run_slice(job, calm, day * DAY_MS, with_report=False)
    warehouse = open_warehouse(make_settings(chaotic))
    wanted, found = (_records(make_settings(of).warehouse) for of in (quiet, chaotic))
    damages = verify(warehouse, job.name, everything=True).damages
    commits = [CommitLog(open_warehouse(make_settings(of)), job.name).head_number() for of in (quiet, chaotic)]
    missing, more = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    print(f"{len(found):,} records: {missing.total()} lost or different, {more.total()} doubled or different")
    published = published_through(warehouse, job.name)
    print(f"commits {commits[1]} of {commits[0]}, published {published}; damaged files: {len(damages)}")
    is_right = not missing and not more and commits[0] == commits[1] and not damages
    return 0 if is_right and states["success"] == given.slices else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
