"""What a frame's columns and rows tell of records: their times, in milliseconds, and the order of their arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

from statelib.columns.times import LAST_TIME_MS, unit_hint
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BEGINS_WITH_A_YEAR = r"^\s*[+-]?(\d{4}(?!\d)|\d{5,}-)"
"""Spark takes a time of day for one of today, and 201301 for a year: text like that is no time of a record."""


_LISTS = ("LogicalRDD", "LocalRelation", "Range", "OneRowRelation")
_ROW_BY_ROW = ("Project", "Filter", "SubqueryAlias")
_ALSO_OF_LISTS = ("View", "Union", "Generate", "GlobalLimit", "LocalLimit", "MapInPandas", "MapInArrow", "ResolvedHint")
"""Nodes of Spark's plans: rows in an order, and what leaves rows in the order in which they come."""


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


def arrival(frame: DataFrame, *, is_asked: bool) -> list[Column]:
    """What puts a frame's rows into the order in which they stand there, files by their paths.

    Args:
        frame: The rows.
        is_asked: Whether that order is asked for, and not only where times are equal.

    Raises:
        ConfigurationError: It is, and the rows stand in none.
    """
    position = f.monotonically_increasing_id()  # ascends within each of the parts that Spark reads at once
    come_from = _come_from(frame._jdf.queryExecution().analyzed())  # noqa: SLF001 - Python cannot ask for it
    if come_from == "files":
        return [f.col("_metadata.file_path"), f.col("_metadata.file_block_start"), position]
    if come_from == "anywhere" and is_asked:
        step = "name the columns that tell it (order_by), or sort the frame (orderBy)"
        raise ConfigurationError("Spark gives the rows of this frame in no certain order", next_step=step)
    return [position]


def _come_from(plan: Any) -> Literal["files", "list", "anywhere"]:
    """Whether a plan's rows are those of files, part by part; stand in an order; or in none."""
    name = plan.nodeName()
    children = [plan.children().apply(n) for n in range(plan.children().size())]
    if name == "LogicalRelation" and plan.relation().getClass().getSimpleName() == "HadoopFsRelation":
        return "files"
    if name in _LISTS or (name == "Sort" and getattr(plan, "global")()):
        return "list"
    if name in _ROW_BY_ROW or (name == "Repartition" and not plan.shuffle()):
        return _come_from(children[0])
    if name in _ALSO_OF_LISTS and all(_come_from(child) == "list" for child in children):
        return "list"
    return "anywhere"
