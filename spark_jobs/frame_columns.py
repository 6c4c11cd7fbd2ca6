"""What a frame's columns and rows tell of records: their times, in milliseconds, and the order of their arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

from statelib.counted import counted
from statelib.errors import ConfigurationError, InputError
from statelib.times import LAST_TIME_MS, unit_hint

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BEGINS_WITH_A_YEAR = r"^\s*[+-]?(\d{4}(?!\d)|\d{5,}-)"
"""Spark takes a time of day for one of today, and 201301 for a year: text like that is no time of a record."""


class TimeColumn(NamedTuple):
    """A column of times.

    Attributes:
        milliseconds: long, since 1970; null where there is no time, or what there is cannot be read as one.
        order: What rows are sorted by, no less exact than the column itself: microseconds count.
        text: string, what there is where that cannot be read; null elsewhere.
    """

    milliseconds: Column
    order: Column
    text: Column


def column(name: str) -> Column:
    """A frame's column, whatever characters its name has."""
    return f.col("`{}`".format(name.replace("`", "``")))


def time_column(frame: DataFrame, name: str) -> TimeColumn:
    """The times that a column holds.

    Raises:
        ConfigurationError: It is of a type that tells no times.
    """
    given, kind = column(name), frame.schema[name].dataType
    if isinstance(kind, NumericType):
        whole = given.try_cast("long")
        milliseconds = f.when(whole.cast(kind) == given, whole)
        order = milliseconds
    elif isinstance(kind, (TimestampType, TimestampNTZType, DateType)):
        order = given.cast("timestamp")
        milliseconds = f.unix_millis(order)
    elif isinstance(kind, StringType):
        order = f.when(given.rlike(_BEGINS_WITH_A_YEAR), given.try_cast("timestamp"))
        milliseconds = f.unix_millis(order)
    else:
        what = f"the column of timestamps is of type {kind.simpleString()}"
        step = "make it a timestamp, or a number of milliseconds since 1970"
        raise ConfigurationError(what, column=name, next_step=step)
    return TimeColumn(milliseconds, order, f.when(milliseconds.isNull(), given.cast("string")))


def check_times(milliseconds: pa.Array, text: pa.Array, keys: pa.Array, topic: str) -> None:
    """Refuses rows whose time no record can have; runs in a worker.

    Args:
        milliseconds: int64, null where there is no time.
        text: string, what there is in place of a time.
        keys: Of any type, for the error.
        topic: For the error.

    Raises:
        InputError: There is one; names the first.
    """
    known = np.asarray(pc.fill_null(milliseconds, 0))
    wrong = (known < 0) | (known > LAST_TIME_MS) | np.asarray(milliseconds.is_null())
    if not wrong.any():
        return
    row, count = int(wrong.argmax()), int(wrong.sum())
    place = {"topic": topic, "key": keys[row].as_py()}
    rows = counted(count, "row has", "rows have")
    if milliseconds[row].is_valid:
        hint = unit_hint(int(known[row]))
        what = f"{rows} a timestamp that no record can have, such as {known[row]} ms since 1970{hint}"
        step = "filter these rows, or bring the column to milliseconds since 1970"
        raise InputError(what, next_step=step, **place)
    if text[row].is_valid:
        what = f"{rows} a timestamp that cannot be read, such as {text[row].as_py()!r}"
        step = "filter these rows, or make the column a timestamp (to_timestamp with a format) or whole milliseconds"
        raise InputError(what, next_step=step, **place)
    raise InputError(f"{rows} no timestamp", next_step="filter these rows, or give them one", **place)


def arrival(frame: DataFrame) -> list[Column]:
    """What puts a frame's rows into the order in which they stand there, files by their paths."""
    position = f.monotonically_increasing_id()  # ascends within each of the parts that Spark reads at once
    block = [f.col("_metadata.file_path"), f.col("_metadata.file_block_start"), position]
    try:
        frame.select(*block)
    except AnalysisException:  # its rows do not come right from files
        return [position]
    return block
