"""What Spark needs to start, looked at before, and why it has not started, from what its Java process has said."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

OLDEST = "4.1"
"""The oldest line of Spark that works: that of ``pyproject.toml``."""

_NUMBER = re.compile(r"\d+")
_MOST_SAID = 1 << 20
"""Bytes of the log that are looked at: the newest of an attempt."""

_NO_MASTER = re.compile(r"Failed to connect to master (\S+)")
_NO_MEMORY = re.compile(
    r"^(?:.*(?:maximum heap|initial heap|heap size|object heap|insufficient memory|OutOfMemoryError).*)$",
    re.MULTILINE | re.IGNORECASE,
)
_ENDED_BY = re.compile(r'^Exception in thread "main" (?:[\w.$]+: )?(.+)$', re.MULTILINE)
_JAVA_ERROR = re.compile(r"^(?:Error: |Unrecognized )(.+)$", re.MULTILINE)


def check_local_dirs(options: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> None:
    """Whether Spark can make a directory for what it keeps on disk; of several one is enough for it.

    Args:
        options: Spark's configuration.
        environ: Environment variables; ``SPARK_LOCAL_DIRS`` goes before the configuration.

    Raises:
        ConfigurationError: It cannot.
    """
    named = environ.get("SPARK_LOCAL_DIRS")
    setting = "SPARK_LOCAL_DIRS" if named else "spark_conf.spark.local.dir"
    reasons = []
    for folder in (named or options.get("spark.local.dir", "")).split(","):
        if not folder:
            continue
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            Path(tempfile.mkdtemp(prefix="hindstream-", dir=folder)).rmdir()
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror}")
        else:
            return
    if reasons:
        raise ConfigurationError(
            f"Spark cannot write its local files ({'; '.join(reasons)})",
            setting=setting,
            next_step="name a directory on a disk with room, which this user may write to",
        )


def check_version(version: str, environ: Mapping[str, str] = os.environ) -> None:
    """Whether the Spark that has started is recent enough: its cluster may have brought its own.

    Args:
        version: As Spark says it, ``3.5.1``; other makers' go on behind that, ``3.5.1-amzn-1``.
        environ: Environment variables; ``SPARK_HOME`` is where Spark is, if it is not pyspark's own.

    Raises:
        ConfigurationError: It is older than `OLDEST`.
    """
    found, oldest = ([int(number) for number in _NUMBER.findall(text)[:2]] for text in (version, OLDEST))
    if found < oldest:
        what = f"this is Spark {version}, and a replay needs {OLDEST} or later"
        step = f"use a cluster of Spark {OLDEST}; if this one is, unset SPARK_HOME or let it name that Spark"
        raise ConfigurationError(what, spark_home=environ.get("SPARK_HOME") or "that of pyspark", next_step=step)


def start_error(error: Exception, log: Path, since: int) -> ConfigurationError:
    """The error of a Spark that has not started.

    Args:
        error: What its Python side has raised.
        log: Where Java writes.
        since: Where in it this attempt begins, in bytes.
    """
    said = _said(log, since)
    if found := _NO_MASTER.search(said):
        what, setting = f"no Spark master answers at {found[1]}", "spark_master"
        next_step = f"check that it runs, and that this is its address as its own log has it; this one's is {log}"
    elif found := _NO_MEMORY.search(said):
        what, setting = f"Spark does not start: {found[0].strip()}", "spark_conf.spark.driver.memory"
        next_step = f"give it what this machine has, such as 2g, and look at {log}"
    else:
        found = _ENDED_BY.search(said) or _JAVA_ERROR.search(said)
        what, setting = f"Spark does not start: {found[1].strip() if found else _text(error)}", "spark_master"
        next_step = f"check the settings spark_master and spark_conf, and look at {log}"
    return ConfigurationError(what, setting=setting, next_step=next_step)


def _said(log: Path, since: int) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(since, log.stat().st_size - _MOST_SAID))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _text(error: Exception) -> str:
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with Spark

    try:
        java = getattr(error, "java_exception", None)
        text = str(error if java is None else java.getMessage() or java.toString())
    except (Py4JError, OSError):  # Java has ended
        text = str(error)
    return (text.strip().splitlines() or [type(error).__name__])[0]
