"""Whether a driver has the code of the task that has submitted it: it plans and commits with its own.

A driver on another host loads the job from the files of that host. The topology's fingerprint tells nothing of the
user's functions. So whoever submits writes down what its code is made of, and the driver compares.
"""

from __future__ import annotations

import importlib.util
import socket
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from statelib.job.user_code import code_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.job.job import Job

_HINDSTREAM = "hindstream"
_TOLD_AT_MOST = 5
_DOCS = "docs/airflow.md#one-version-of-the-code"


def code_of(reference: str) -> dict[str, str]:
    """The version of Hindstream, and the digests of the job's files by their names: of a job that is loaded here."""
    return {_HINDSTREAM: version("hindstream"), **code_files(reference)}


def load_same(reference: str, fork: str | None, submitted: Mapping[str, str] | None) -> Job:
    """In a driver: the job, of the code of whoever has submitted it.

    Args:
        reference: Where the job is.
        fork: As for `statelib.job.job.load_job`.
        submitted: What `code_of` gave there; None: it is not known.

    Raises:
        ConfigurationError: The job is not on this host, or another version of it.
    """
    host = socket.gethostname()
    _check_present(reference, host)
    try:
        job = load_job(reference, fork=fork)
    except ConfigurationError as error:
        raise error.placed(host=host) from error
    if submitted is not None:
        _check_same(reference, submitted, host)
    return job


def _check_present(reference: str, host: str) -> None:
    place = reference.partition(":")[0]
    if place.endswith(".py"):
        if not Path(place).is_file():
            step = f"deploy it to this path on all hosts of the cluster, in the version that Airflow has: {_DOCS}"
            raise ConfigurationError("the driver's host has no such file", file=place, host=host, next_step=step)
        return
    package = place.partition(".")[0]
    if package.isidentifier() and importlib.util.find_spec(package) is None:
        step = f"install it on all hosts of the cluster, in the version that Airflow has: {_DOCS}"
        raise ConfigurationError("the driver's host has no such module", module=package, host=host, next_step=step)


def _check_same(reference: str, submitted: Mapping[str, str], host: str) -> None:
    here = code_of(reference)
    is_file = reference.partition(":")[0].endswith(".py")
    compared = here.keys() | submitted.keys() if is_file else here.keys()  # a DAG file may use others of the package
    differing = sorted(name for name in compared if here.get(name) != submitted.get(name))
    if not differing:
        return
    told = ["Hindstream" if name == _HINDSTREAM else name for name in differing[:_TOLD_AT_MOST]]
    if more := len(differing) - len(told):
        told.append(f"{more} more")
    what = "the driver's host has another version of the code than the task that has submitted it"
    step = f"deploy one version to Airflow and to all hosts of the cluster, then clear the task: {_DOCS}"
    raise ConfigurationError(what, job=reference, host=host, differing=" ".join(told), next_step=step)
