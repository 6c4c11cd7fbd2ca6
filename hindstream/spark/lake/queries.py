"""Results of queries as files: written once for a load, whose two stages then read the same rows, however often.

::

    topics/<topic>/_queries/<attempt>/<query>/<partition of the result>.<attempt at its task>.parquet

A query may give other rows, and the same ones in another order, each time that it runs. So Spark does not read it
anew for a task that is run again. The files are deleted when the load has ended; a load that was killed is begun anew.
"""

from __future__ import annotations

import logging
import re
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.errors import PySparkException, PySparkTypeError
from pyspark.sql.pandas.types import to_arrow_schema

from hindstream.spark.frames.arrow_batches import arrow_batches
from hindstream.spark.session.session import spark_session
from hindstream.spark.tasks.works import TaskErrors, attempt_name, run_action
from statelib.errors.kinds import ConfigurationError, HindstreamError, InputError, RetryableError
from statelib.ingest.sources.files import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame

    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_BATCH_ROWS = 10_000
_SAMPLED_ROWS = 50_000
_POSITION = re.compile(r"\(line \d+, pos \d+\)")
_LOGGER = "SQLQueryContextLogger"
"""Where PySpark writes errors of queries with both stacks; they are said once."""

_OF_QUERY = "42"
"""What Spark's codes of wrong queries begin with (SQLSTATE, class "syntax error or access rule violation")."""

_OF_VALUES = ("21", "22", "23", "P0")
"""The same of values that a query cannot work with."""

_CORRECT = "correct the query; files are tables too, such as parquet.`data/*.parquet`: docs/ingest.md#queries"


def query_result(query: str, settings: Settings, into: Storage) -> list[SourceFile]:
    """Runs a query, and writes its rows.

    Args:
        query: Its text.
        settings: For Spark.
        into: Where the files are written; nobody else writes there.

    Returns:
        The files, in the order of the rows; none: there is no row.

    Raises:
        ConfigurationError: It is no query, or it names what is not there.
        InputError: It cannot work with a value.
        RetryableError: Spark has given up, or the store did not answer.
    """
    with _errors_told(query):
        frame = _frame(query, settings)
        spark = frame.sparkSession
        errors = TaskErrors(spark.sparkContext)
        plain = frame.toDF(*(f"c{n}" for n in range(len(frame.columns))))  # Spark would look for `a.b` in a column a
        writer = _Write(into, tuple(frame.columns), uuid.uuid4().hex[:8], errors)
        written = plain.mapInArrow(writer, "path string, size_bytes long")
        with arrow_batches(spark, _BATCH_ROWS):
            rows = run_action(spark.sparkContext, written.collect, errors, name="run the query", tasks=None, place={})
    return [_file(into, row.path, row.size_bytes) for row in sorted(rows)]


def query_sample(query: str, settings: Settings, folder: Path) -> list[SourceFile]:
    """Some rows of a query, written to a folder of this machine; all are counted. Errors as `query_result`."""
    with _errors_told(query):
        frame = _frame(query, settings)
        sample = frame.limit(_SAMPLED_ROWS).toArrow()
        rows = frame.count() if sample.num_rows == _SAMPLED_ROWS else sample.num_rows
    path = folder / f"{uuid.uuid4().hex}.parquet"
    pq.write_table(sample, path)
    return [SourceFile(str(path), path.stat().st_size, "", format="parquet", rows=rows)] if rows else []


def _frame(query: str, settings: Settings) -> DataFrame:
    spark = spark_session(settings)
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - PySpark has no public counterpart
    parser.parseQuery(query)  # a command would be carried out
    frame = spark.sql(query)
    known = [name.lower() for name in frame.columns]  # as Spark tells columns apart
    if twice := [name for name in frame.columns if known.count(name.lower()) > 1]:
        what = "two columns of the query have one name"
        raise ConfigurationError(what, column=twice[0], next_step="give one of them another name: AS name")
    try:
        to_arrow_schema(frame.schema)
    except (PySparkTypeError, ValueError) as error:
        what = f"a topic cannot hold what the query gives: {' '.join(str(error).split())}"
        step = "cast that column, for example to a string"
        raise ConfigurationError(what, query=_shown(query), next_step=step) from error
    return frame


@contextmanager
def _errors_told(query: str) -> Iterator[None]:
    """Says in Spark's own sentence what is wrong with a query."""
    logger = logging.getLogger(_LOGGER)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    except PySparkException as error:
        raise _of_spark(error, query) from error
    except RetryableError as error:
        if isinstance(error.__cause__, PySparkException):
            raise _of_spark(error.__cause__, query) from error
        raise
    finally:
        logger.setLevel(level)


def _of_spark(error: PySparkException, query: str) -> HindstreamError:
    state = error.getSqlState() or ""
    if state.startswith(_OF_QUERY):
        return ConfigurationError(
            f"the query cannot be run: {_sentence(error)}", query=_shown(query), next_step=_CORRECT
        )
    if state.startswith(_OF_VALUES):
        step = "let the query treat such values, or leave them out"
        return InputError(f"the query has failed: {_sentence(error)}", query=_shown(query), next_step=step)
    step = "run the same command again; the log of Spark says more"
    return RetryableError(f"the query has failed: {_sentence(error)}", query=_shown(query), next_step=step)


def _sentence(error: PySparkException) -> str:
    """The first line of what Spark says, with the place in the query."""
    said = str(error).strip()
    first = said.partition("\n")[0].partition(" SQLSTATE:")[0]
    place = _POSITION.search(said.partition("== SQL ==")[0])
    return f"{first} {place[0]}" if place and place[0] not in first else first


def _shown(query: str) -> str:
    return " ".join(query.split())


def _file(storage: Storage, path: str, size_bytes: int) -> SourceFile:
    local = storage.local_path(path)
    options = tuple(sorted(storage.options.items()))
    return SourceFile(str(local or storage.uri(path)), size_bytes, "", format="parquet", options=options)


@dataclass(frozen=True, slots=True)
class _Write:
    """Runs in a worker: writes the rows of one partition of a result."""

    storage: Storage
    names: tuple[str, ...]
    nonce: str
    errors: TaskErrors

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.errors.told():
            rows = (batch.rename_columns(list(self.names)) for batch in batches if batch.num_rows)
            first = next(rows, None)
            if first is not None:
                path, size_bytes = self._written(first, rows)
                yield pa.RecordBatch.from_pydict({"path": [path], "size_bytes": [size_bytes]})

    def _written(self, first: pa.RecordBatch, others: Iterable[pa.RecordBatch]) -> tuple[str, int]:
        """Path and size of the file."""
        context = TaskContext.get()
        assert context is not None  # noqa: S101 - in a worker there is one
        path = f"{context.partitionId():06d}.{attempt_name(self.nonce).replace('-', '_')}.parquet"
        with (
            self.storage.open_output(path) as raw,
            pa.PythonFile(raw, "w") as out,
            pq.ParquetWriter(out, first.schema, compression="lz4") as writer,
        ):
            writer.write_batch(first)
            for batch in others:
                writer.write_batch(batch)
            writer.close()
            size_bytes = out.tell()
        return path, size_bytes
