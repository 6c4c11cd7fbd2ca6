"""Errors of the user's own functions: what is said of them, and where; the one way for all kinds of operators.

Nothing is done as long as none fails. Whoever calls functions says whose they are and, where one has failed, for which
record: by its sequence, of which the task knows topic, partition and offset (`statelib.task.graph`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.errors.exhausted import is_exhaustion
from statelib.errors.kinds import ConfigurationError, HindstreamError
from statelib.errors.user_lines import place_in_user_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

FAILURES = (Exception, SystemExit)
"""What a user's function may raise; ``sys.exit()`` in one must not end a task as if all were well."""


@dataclass(frozen=True, slots=True)
class Failing:
    """For which of some records a function fails.

    Attributes:
        rows: Finds the rows; it calls the function again.
        of: How many records there are.
    """

    rows: Callable[[], list[int]]
    of: int


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
) -> Iterator[None]:
    """Around calls of a user's functions.

    Args:
        what: What they are, for the error: ``a mapper``.
        functions: Themselves: where one of them is defined is told where no line of the error's is the user's.
        node: The node's name.
        sequence: Called with what one has raised: the sequence of the record that it was called for; None: not known.
        failing: For which records it fails; None: that cannot be found out.

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
        told = failure(what, error, functions, node=node, sequence=found)
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
        if (of_chosen := error.failing) is not None:
            failing_rows = of_chosen.rows

            def rows() -> list[int]:
                return np.flatnonzero(chosen)[failing_rows()].tolist()  # type: ignore[no-any-return]

            error.failing = Failing(rows, len(chosen))
        raise


def failure(
    what: str,
    error: BaseException,
    functions: Sequence[object] = (),
    *,
    node: str | None = None,
    sequence: int | None = None,
) -> HindstreamError:
    """What to raise for an error of a user's functions. Args as of `calling`."""
    place = {"node": node, **place_in_user_code(error, functions)}
    if isinstance(error, HindstreamError):
        told = error.placed(**place)
    else:
        text = f": {error}" if str(error) else ""
        thing = what.removeprefix("a ").removeprefix("an ")
        step = f"fix the {thing}, or filter such records out before it"
        told = UserFunctionError(f"{what} failed: {type(error).__name__}{text}", next_step=step, **place)
    if told.sequence is None:
        told.sequence = sequence
    return told


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


def all_that_fail(call: Callable[[pa.RecordBatch], object], columns: pa.RecordBatch) -> list[int]:
    """All rows that a function of a batch fails for, whatever it raises, when it is called for each alone.

    Args:
        call: The function. It is called with parts, of many rows as long as it fails for none of them.
        columns: What it has failed for.
    """
    failing: list[int] = []
    start, size = 0, columns.num_rows
    while start < columns.num_rows:
        part = columns.slice(start, min(size, columns.num_rows - start))
        row = _first(lambda rows: _raised(call, rows) is not None, part) if _raised(call, part) is not None else None
        if row is None:
            start, size = start + part.num_rows, 2 * size
        else:
            failing.append(start + row)
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
