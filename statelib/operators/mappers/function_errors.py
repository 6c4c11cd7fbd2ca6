"""Errors of the user's own functions: what is said of them, and where; the one way for all kinds of operators.

Nothing is done as long as none fails. Whoever calls functions says whose they are and, where one has failed, for which
record: by its sequence, of which the task knows topic, partition and offset (`statelib.task.graph`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from statelib.errors.exhausted import is_exhaustion
from statelib.errors.kinds import ConfigurationError, HindstreamError
from statelib.errors.user_lines import place_in_user_code
from statelib.operators.mappers.missing import step_for_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

FAILURES = (Exception, SystemExit)
"""What a user's function may raise; ``sys.exit()`` in one must not end a task as if all were well."""


OnFailure: TypeAlias = "Callable[[int, str], None]"
"""Told the sequence of a record for which a function fails, and what is said of that: it is counted, and left out."""


@dataclass(frozen=True, slots=True)
class Failing:
    """For which of some records a function fails.

    Attributes:
        what: What the function is, for the error: ``a mapper``.
        errors: Finds the rows for which it fails, and what it raises for each; it calls the function again.
        of: How many records there are.
        places: int64, of which of them it is asked; None: of all.
    """

    what: str
    errors: Callable[[], Mapping[int, BaseException]]
    of: int
    places: NDArray[np.int64] | None = None

    def found(self) -> dict[int, str]:
        """What is said of each record for which it fails, by row; empty: it fails for none of them alone."""
        return {
            row if self.places is None else int(self.places[row]): _text(self.what, error)
            for row, error in self.errors().items()
            if not isinstance(error, HindstreamError)  # as a value of another type is: it ends the run
        }


class UserFunctionError(ConfigurationError):
    """A function of the user has raised an error."""

    failing: Failing | None = None
    """Where the function was called for whole columns: for which rows it fails. No copy has it."""


@contextmanager
def calling(
    what: str,
    functions: Sequence[object] = (),
    *,
    node: str | None = None,
    sequence: Callable[[BaseException], int | None] | None = None,
    failing: Failing | None = None,
    columns: pa.Schema | None = None,
) -> Iterator[None]:
    """Around calls of a user's functions.

    Args:
        what: What they are, for the error: ``a mapper``.
        functions: Themselves: where one of them is defined is told where no line of the error's is the user's.
        node: The node's name.
        sequence: Called with what one has raised: the sequence of the record that it was called for; None: not known.
        failing: For which records it fails; None: that cannot be found out.
        columns: Of the batch that they are called for; None: they see no batch.

    Raises:
        HindstreamError: One has raised it, or, as a `UserFunctionError`, anything else.
        MemoryError: As it is, with whatever else says that memory or threads have run out.
    """
    try:
        yield
    except FAILURES as error:
        if is_exhaustion(error):
            raise
        found = sequence(error) if sequence else None
        told = failure(what, error, functions, node=node, sequence=found, columns=columns)
        if isinstance(told, UserFunctionError) and found is not None:
            told.failing = failing
        raise told from error


@contextmanager
def among(chosen: NDArray[np.bool_]) -> Iterator[None]:
    """Around calls for some records of a batch: which of them fails is told by its row in the batch.

    Args:
        chosen: bool, by row of the batch: whether it is one of them.
    """
    try:
        yield
    except UserFunctionError as error:
        if (failing := error.failing) is not None:
            rows = np.flatnonzero(chosen)
            places = rows if failing.places is None else rows[failing.places]
            error.failing = replace(failing, places=places, of=len(chosen))
        raise


def failure(
    what: str,
    error: BaseException,
    functions: Sequence[object] = (),
    *,
    node: str | None = None,
    sequence: int | None = None,
    columns: pa.Schema | None = None,
) -> HindstreamError:
    """What to raise for an error of a user's functions. Args as of `calling`."""
    place = {"node": node, **place_in_user_code(error, functions)}
    if isinstance(error, HindstreamError):
        told = error.placed(**place)
    else:
        thing = what.removeprefix("a ").removeprefix("an ")
        step = None if columns is None else step_for_batch(error, columns)
        step = step or f"fix the {thing}, or filter such records out before it"
        told = UserFunctionError(_text(what, error), next_step=step, **place)
    if told.sequence is None:
        told.sequence = sequence
    return told


def _text(what: str, error: BaseException) -> str:
    return f"{what} failed: {type(error).__name__}{f': {error}' if str(error) else ''}"


def first_that_fails(
    call: Callable[[pa.RecordBatch], object], columns: pa.RecordBatch, error: BaseException
) -> int | None:
    """The first row that a function of a batch fails for alone, in the same way; None: it fails so for none alone.

    Args:
        call: The function. It is called with halves.
        columns: What it has failed for.
        error: What it has raised then. Where that tells of more than one record, any other will do, unless it is
            Hindstream's own, which is about the whole batch then.
    """

    def is_like(raised: BaseException | None) -> bool:
        return (type(raised), str(raised)) == (type(error), str(error))

    row = _first(lambda part: is_like(_raised(call, part)), columns)
    if row is None and not isinstance(error, HindstreamError):
        row = _first(lambda part: _raised(call, part) is not None, columns)
    return row


def all_that_fail(call: Callable[[pa.RecordBatch], object], columns: pa.RecordBatch) -> dict[int, BaseException]:
    """All rows that a function of a batch fails for, when it is called for each alone, and what it raises then.

    Args:
        call: The function. It is called with parts, of many rows as long as it fails for none of them.
        columns: What it has failed for.
    """
    failing: dict[int, BaseException] = {}
    start, size = 0, columns.num_rows
    while start < columns.num_rows:
        part = columns.slice(start, min(size, columns.num_rows - start))
        row = _first(lambda rows: _raised(call, rows) is not None, part) if _raised(call, part) is not None else None
        if row is None:
            start, size = start + part.num_rows, 2 * size
        else:
            error = _raised(call, part.slice(row, 1))
            if error is not None:
                failing[start + row] = error
            start, size = start + row + 1, max(1, row // 2)
    return failing


def _first(fails: Callable[[pa.RecordBatch], bool], columns: pa.RecordBatch) -> int | None:
    first, end = 0, columns.num_rows
    while end - first > 1:
        middle = (first + end) // 2
        first, end = (first, middle) if fails(columns.slice(first, middle - first)) else (middle, end)
    return first if end > first and fails(columns.slice(first, 1)) else None


def _raised(call: Callable[[pa.RecordBatch], object], columns: pa.RecordBatch) -> BaseException | None:
    try:
        call(columns)
    except FAILURES as error:
        return error
    return None
