"""A PostgreSQL of our own on loopback, where this machine has one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.hindstream.airflow.airflow_environ import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = ("initdb", "postgres")
"""What has to be there."""

USER = "somebody"
"""Who may do everything, without a password; the database is ``postgres``."""


def has_postgres() -> bool:
    """Whether it can be started here."""
    return all(shutil.which(program) for program in PROGRAMS)


@contextmanager
def postgres() -> Iterator[int]:
    """Its port, while it runs; its data go with it."""
    place = Path(tempfile.mkdtemp(prefix="pg-"))  # short, as those of sockets are; and it may be nobody's
    who: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        who = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(place, "nobody", "nogroup")
    data, log, port = place / "data", place / "log", free_port()
    options = ["-k", place, "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    with log.open("wb") as output:
        to_log: dict[str, Any] = {"stdout": output, "stderr": output, "cwd": "/", **who}
        subprocess.run(["initdb", "-D", data, "-U", USER, "-A", "trust"], check=True, **to_log)
        process = subprocess.Popen(["postgres", "-D", data, *options], **to_log)
    try:
        while not any(place.glob(".s.PGSQL.*")):
            if process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.2)
        yield port
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        shutil.rmtree(place)
