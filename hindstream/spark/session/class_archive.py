"""The archive of the classes that Spark's Java loads at its start: with it Spark starts in about half the time.

``python -m hindstream.spark.session.class_archive`` makes it, beside the jars that it is of: ``./dev setup`` does, and
who installs Hindstream by other means may. It is Java's class-data sharing (JEP 310): a file that Java maps into its
memory. An archive by another Java or of other jars is passed over by Java, and the start takes as long as without.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindstream.spark.session.session import CLASS_ARCHIVE, jars, spark_session
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(archive: Path = CLASS_ARCHIVE) -> None:
    """Starts a Spark, lets it work a little, and archives the classes that it has loaded. Takes a minute.

    Raises:
        ConfigurationError: There is no Java, it cannot make archives, or there is no room for this one (150 MB).
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        classes = Path(folder) / "classes"
        conf = {"spark.driver.extraJavaOptions": f'"-XX:DumpLoadedClassList={classes}"'}
        spark = spark_session(load_settings({"spark_conf": conf, "state_dir": folder}, environ={}))
        _work_a_little(spark)
        context: Any = spark.sparkContext
        gateway = context._gateway  # noqa: SLF001
        java = f"{context._jvm.java.lang.System.getProperty('java.home')}/bin/java"  # noqa: SLF001
        spark.stop()
        gateway.shutdown()
        gateway.proc.communicate()  # its list is whole when it has ended, which it does at the end of its input
        dump(java, jars(), classes, archive)


def dump(java: str, class_path: str, classes: Path, archive: Path) -> None:
    """Writes the archive of the classes that the file ``classes`` lists; there is a whole one or the one before.

    Raises:
        ConfigurationError: As of `write`.
    """
    unfinished = classes.with_suffix(".jsa")
    command = [java, "-Xshare:dump", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={unfinished}"]
    done = subprocess.run([*command, "-cp", class_path], capture_output=True, text=True, check=False)  # noqa: S603 - Spark's own Java
    if done.returncode != 0 or not unfinished.exists():
        lines = (done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        raise ConfigurationError(
            f"{java} made no archive of Spark's classes: {lines[-1]}",
            file=str(archive),
            next_step="continue without it, Spark only starts more slowly; or try another Java 17 or 21 (JAVA_HOME)",
        )
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())  # Java does not survive half of one
    unfinished.replace(archive)


def _work_a_little(spark: SparkSession) -> None:
    """What jobs do: Python tasks, and frames that Python reads."""
    spark.sparkContext.parallelize(range(2), 2).map(abs).collect()
    spark.range(1_000).selectExpr("id % 7 as key").groupBy("key").count().toArrow()


if __name__ == "__main__":
    try:
        write()
    except ConfigurationError as error:
        sys.exit(str(error))
