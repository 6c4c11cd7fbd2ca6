"""The Spark of this process: started once, local unless a master is set, and quiet."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from hindstream.spark.session.compiling import mark_option
from hindstream.spark.session.java import find_java
from hindstream.spark.session.start import check_local_dirs, check_version, start_error
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings

_LOCAL = re.compile(r"local(\[(?P<threads>\*|\d+)(,\s*(?P<failures>\d+))?\])?")
_MAX_FAILURES = "spark.task.maxFailures"
DEFAULT_MAX_FAILURES = 4
"""Spark's own."""

_PLACEMENT_OPTIONS = {
    # A task had better wait for the host that has its state, however busy it is; only what asks for executors waits so
    # long. Spark does not wait for executors that are lost.
    "spark.locality.wait.process": "1h",
    # Copies of state get the slots that nobody else wants.
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": Path(__file__).with_name("fairscheduler.xml").as_uri(),
    # An executor that was lost since slots were counted is not waited for at length.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "5",
}
_one_at_a_time = Lock()
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

WORKER_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""What Python workers have in their environment, unless the driver's says otherwise.

Arrow takes its memory from the system's allocator: a worker lives for a run, and is to use again what it has. Arrow's
own touches some 40 MiB more of fresh memory for the same work, 0.1 CPU seconds a worker."""

CLASS_ARCHIVE = Path(sys.prefix) / "share" / "hindstream" / "spark.jsa"
"""The classes that Spark's Java loads at its start, of this environment's jars: see `class_archive`."""


def spark_session(settings: Settings) -> SparkSession:
    """Spark's session, for frames; loading its SQL takes a second beyond `spark_context`.

    Raises:
        ConfigurationError: See `spark_context`.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415

    context = spark_context(settings)
    return SparkSession.getActiveSession() or SparkSession(context)


def spark_context(settings: Settings) -> SparkContext:
    """Spark's context; the first call starts Spark, with ``settings.spark_master`` and ``settings.spark_conf``.

    Under ``spark-submit`` the master and the Java options are those of the submission. Otherwise what Spark's Java
    process and its Python workers print goes to ``spark.log`` in ``settings.state_dir``.

    Raises:
        ConfigurationError: There is no Java, nowhere to write, or Spark does not start, or is too old.
    """
    with _one_at_a_time:
        return _started(settings)


def start_ahead(settings: Settings) -> None:
    """Starts Spark in a thread, for who has other work to do first; what goes wrong `spark_context` tells later."""
    if settings.engine != "spark" or "PYSPARK_GATEWAY_PORT" in os.environ:
        return

    def start() -> None:
        with suppress(Exception):  # of any kind: a thread's would be printed as a traceback beside it
            spark_context(settings)

    Thread(target=start, name="start Spark", daemon=True).start()


def _started(settings: Settings) -> SparkContext:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  (a second, which not every command needs)
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    from py4j.protocol import Py4JError  # noqa: PLC0415  # isort: skip

    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public way
    if context is not None and context._jsc is not None:  # noqa: SLF001 - not stopped
        return context
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what goes wrong is said once, by `start_error`
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        os.environ["JAVA_HOME"] = str(find_java().home)
        if settings.spark_master.startswith("local"):
            os.environ.pop("SPARK_HOME", None)  # another Spark's jars under this pyspark
    options = _options(settings, submitted=submitted)
    if not submitted:
        os.environ["PYSPARK_PYTHON"] = options[
            "spark.pyspark.python"
        ]  # of the two, spark-submit alone takes the option
    conf = SparkConf()
    for name, value in options.items():
        conf.set(name, value)
    log = spark_log(settings.local_state_dir)
    since = sys.maxsize  # of a submission's Java nothing is there
    if not submitted:
        check_local_dirs(options)
        since = _size_of_log(log)
    try:
        if submitted:
            context = SparkContext.getOrCreate(conf)
        else:
            with log.open("ab") as output:
                streams = {"stdout": output, "stderr": output}
                gateway = launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
            context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("ERROR")
    except (Py4JError, PySparkException, OSError) as error:
        raise start_error(error, log, since) from error
    try:
        check_version(context.version)
    except ConfigurationError:
        context.stop()
        raise
    logging.getLogger("py4j").setLevel(logging.ERROR)  # it says goodbye when the process ends
    return context


def _size_of_log(log: Path) -> int:
    """How much is in Spark's log, in bytes; makes the folder."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.stat().st_size if log.exists() else 0
    except OSError as error:
        what = f"the local directory cannot be written: {error.strerror}"
        step = "name a directory that this user may write to"
        raise ConfigurationError(what, setting="state_dir", file=log.parent, next_step=step) from error


def spark_log(state_dir: Path) -> Path:
    """Where a Spark that was started here writes."""
    return Path(state_dir).absolute() / "spark.log"


def is_local(master: str) -> bool:
    """Whether Spark's tasks run in the driver's process."""
    return _LOCAL.fullmatch(master) is not None


def may_be_cluster(settings: Settings) -> bool:
    """Whether Spark's tasks run on a cluster, as far as that can be told before Spark is started."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or not is_local(settings.spark_master)


def task_max_failures(context: SparkContext) -> int:
    """How many attempts Spark makes at a task: ``local[n]`` one, ``local[n,f]`` f, a cluster as configured."""
    local = _LOCAL.fullmatch(str(context.master))
    if local is not None:
        return int(local["failures"] or 1)
    return int(context.getConf().get(_MAX_FAILURES) or DEFAULT_MAX_FAILURES)


def _options(settings: Settings, *, submitted: bool) -> dict[str, str]:
    """Spark's configuration; what the user sets wins."""
    options = {
        "spark.app.name": "hindstream",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": str(settings.local_state_dir / "spark-warehouse"),
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in WORKER_ENVIRONMENT.items():
        options[f"spark.executorEnv.{name}"] = os.environ.get(name, value)
    if submitted or not is_local(settings.spark_master):
        options |= _PLACEMENT_OPTIONS
    if not submitted:
        options |= _launch_options(settings)
    return options | dict(settings.spark_conf)


def _launch_options(settings: Settings) -> dict[str, str]:
    """What only a driver that is still to be started takes."""
    local = _LOCAL.fullmatch(settings.spark_master)
    if local is None:
        python = os.environ.get("PYSPARK_PYTHON", sys.executable)  # where the hosts have it elsewhere
        return {"spark.master": settings.spark_master, "spark.pyspark.python": python}
    threads = _threads(local["threads"])
    failures = local["failures"] or settings.spark_conf.get(_MAX_FAILURES) or DEFAULT_MAX_FAILURES
    scratch = Path(tempfile.gettempdir()) / f"hindstream-spark-{os.getuid()}"
    return quick_start("driver") | mark_option(scratch) | {
        "spark.pyspark.python": sys.executable,
        "spark.master": f"local[{threads},{failures}]",  # a plain local[n] never retries a task
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.shuffle.partitions": str(threads),
        "spark.ui.enabled": "false",
        "spark.python.daemon.module": "hindstream.spark.session.daemon",
        "spark.driver.extraJavaOptions": " ".join([
            f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
            "-Dderby.system.home=" + str(scratch),
        ]),
    }  # fmt: skip


def quick_start(process: str) -> dict[str, str]:
    """Spark's configuration for a Java that works little itself: a quick start is worth more to it than compiled speed.

    Args:
        process: ``driver`` or ``executor``.
    """
    name = f"spark.{process}.defaultJavaOptions"
    options = {name: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    if CLASS_ARCHIVE.exists():
        options[name] += f' "-XX:SharedArchiveFile={CLASS_ARCHIVE}"'
        options[f"spark.{process}.extraClassPath"] = jars()  # Java wants those of the archive first, and none twice
    return options


def jars() -> str:
    """The class path that is the jars of this environment's Spark."""
    import pyspark  # noqa: PLC0415

    return str(Path(pyspark.__file__).parent / "jars" / "*")


def _threads(given: str | None) -> int:
    return len(os.sched_getaffinity(0)) if given == "*" else int(given or 1)
