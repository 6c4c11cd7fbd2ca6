"""spark-submit at work: it ends with whoever has started it, and so does what it has submitted until then."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hindstream.spark.submission.cluster import Cluster

_SECONDS_TO_END = 3
"""Airflow kills a task that has not ended in five."""


class Running:
    """One call of spark-submit, which somebody may stop from elsewhere, such as a signal's handler.

    Args:
        cluster: Where to it submits.

    Attributes:
        application: What it has submitted there; None: nothing that is known yet.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._process: subprocess.Popen[str] | None = None
        self.application: str | None = None

    @contextmanager
    def started(self, command: Sequence[str], environ: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
        """The process, whose output is to be read; at the end it has ended, and after an exception it was stopped.

        Raises:
            ConfigurationError: There is no such program.
        """
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own program
                command,
                env=dict(environ),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # Java, and in client mode the driver's Python, end together
            )
        except OSError as error:
            what = f"spark-submit cannot be started: {error.strerror}"
            step = "install Spark's client, or name the program: spark-binary of the connection"
            raise ConfigurationError(what, program=command[0], next_step=step) from error
        self._process = process
        with process:
            try:
                yield process
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """Ends the process, and stops the application if there is one."""
        if self._process is not None and self._process.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
        if self.application is not None:
            with suppress(OSError):  # the next try finds it at work
                self._cluster.stop(self.application)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
