"""Arguments that several commands have, and what they stand for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def no_more_than_indices(limit: int | None) -> int | None:
    """A number of rows to show: beyond what an index can be it means all."""
    return None if limit is None else min(limit, sys.maxsize)


Stopped = Annotated[
    bool,
    typer.Option(
        "--stopped", help="Confirm that the application is stopped, if you may not ask its group (protocol streams)."
    ),
]
StateDirToWrite = Annotated[
    Path | None,
    typer.Option(
        "--state-dir", help="Also write the application's state directory, into this state.dir: it starts warm."
    ),
]
JobReference = Annotated[str, typer.Argument(metavar="JOB", help="The job: FILE.py:NAME or PACKAGE.MODULE:NAME.")]
JobName = Annotated[str, typer.Argument(metavar="JOB", help="The job's name, or FILE.py:NAME, or PACKAGE.MODULE:NAME.")]
Warehouse = Annotated[str | None, typer.Option(help="Root of all durable data: a directory or URL.")]
Until = Annotated[
    str | None, typer.Option(help="End of the slice: ISO 8601 with time zone; default: the end of the archives.")
]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any setting; see 'hindstream settings'.")
]
Seal = Annotated[
    bool, typer.Option("--seal", help="Close all windows and emit everything that waits. This ends the job.")
]
Engine = Annotated[
    Literal["spark", "local"] | None,
    typer.Option(help="Where tasks run: on Spark (the default), or in this process, faster for small slices."),
]
Fork = Annotated[
    str | None, typer.Option(metavar="NAME", help="Run the job as its fork of this name: see 'hindstream fork'.")
]
JsonOrText = Annotated[
    Literal["table", "json"], typer.Option("--output", help="Output format: for a person, or JSON, an object a line.")
]
RunId = Annotated[str | None, typer.Option("--run", metavar="RUN_ID", help="The run; default: the newest.")]

Sinks = Annotated[
    list[str] | None,
    typer.Option("--sink", metavar="NAME|A=B", help="Only this sink; may be repeated. Default: all of both."),
]
By = Annotated[
    Literal["latest", "set", "order"] | None,
    typer.Option(help="Newest value of each key; all records in any order; in order. Default: by the topology."),
]
Tolerances = Annotated[
    list[str] | None,
    typer.Option("--tolerance", metavar="[FIELD=]NUMBER", help="By how much numbers may differ; repeatable."),
]
Ignored = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="FIELD", help="Leave out a field: value.debug, timestamp; repeatable."),
]
StoreNames = Annotated[
    list[str] | None,
    typer.Option("--store", metavar="NAME|A=B", help="Compare this store too; may be repeated."),
]
AllStores = Annotated[bool, typer.Option("--stores", help="Compare all stores too.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only rows from this time on: of a window its start counts."),
]
RowsUntil = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only rows before this time.")]
Examples = Annotated[
    int, typer.Option("--limit", min=0, callback=no_more_than_indices, help="Number of examples of each kind.")
]
Page = Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write the comparison as a page, for a review.")]


def check_page(file: Path) -> None:
    """Makes sure that a page can be written, before all the work.

    Raises:
        ConfigurationError: It is a folder, or its folder is not there.
    """
    if file.is_dir() or not file.absolute().parent.is_dir():
        what = "the page cannot be written: it is a folder, or its folder is not there"
        raise ConfigurationError(what, file=str(file), next_step="name a file in a folder that is there")


def given_settings(assignments: list[str] | None, **given: str | None) -> Settings:
    """The settings, those of the command line first.

    Raises:
        ConfigurationError: See `statelib.settings.settings.load_settings`; or ``--set`` without ``=``.
    """
    from statelib.settings.settings import load_settings  # noqa: PLC0415

    values: dict[str, Any] = {}
    for assignment in assignments or []:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigurationError("--set takes NAME=VALUE", setting=assignment, next_step=f"--set {name}=VALUE")
        name, dot, inner = name.replace("-", "_").partition(".")
        if dot:  # one entry of a mapping: --set spark_conf.spark.executor.memory=2g
            values.setdefault(name, {})[inner] = value
        else:
            values[name] = value
    return load_settings({**values, **{name: value for name, value in given.items() if value is not None}})


def sealed(seal: bool) -> str | None:  # noqa: FBT001
    """The setting that ``--seal`` stands for."""
    return "seal" if seal else None


def job_and_commit(reference: str, settings: Settings) -> tuple[str, int | None]:
    """The name of a job that is given as for `job_name`, and the commit behind ``@``; None: none is given.

    Raises:
        ConfigurationError: What is behind ``@`` is no number.
    """
    from hindstream.runs import split_commit  # noqa: PLC0415

    job, commit = split_commit(reference)
    return job_name(job, settings), commit


def job_name(reference: str, settings: Settings) -> str:
    """The name of a job that is given by name or by where it is; of the fork as which it is to run.

    Raises:
        ConfigurationError: No job can have that name, or there is none where it is said to be.
    """
    return named_job(reference, settings.fork)[0]


def named_job(reference: str, fork: str | None) -> tuple[str, Job | None]:
    """The name of a job that is given by name or by where it is, and the job; None: only its name is given.

    Raises:
        ConfigurationError: No job can have that name, or there is none where it is said to be.
    """
    if ":" not in reference and not reference.endswith(".py"):
        from statelib.commits.job_names import check_job_name  # noqa: PLC0415

        check_job_name(reference)
        return reference, None
    from statelib.job.job import load_job  # noqa: PLC0415

    job = load_job(reference, fork=fork)
    return job.name, job
