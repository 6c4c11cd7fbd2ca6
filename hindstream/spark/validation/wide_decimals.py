"""Sums on Spark of exact numbers that can need more than the 38 digits of its decimals, where it fails or rounds.

A column is summed in pieces of 18 digits: a ``bigint`` holds each, and 38 digits its sum. Columns of a row are added by
Python. Nothing here imports Great Expectations: Spark's Python workers import this module.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, TypeGuard

from pyspark.sql import functions as f
from pyspark.sql import types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

DIGITS = 38
"""Of Spark's decimals, at most."""

_GROWTH = 10
"""So many digits more Spark gives to a sum, if there is room."""

_PIECE = 10**18
_PIECES = 3


def can_overflow(of: types.DataType) -> TypeGuard[types.DecimalType]:
    """Whether the sum of a column may not be one of Spark's decimals."""
    return isinstance(of, types.DecimalType) and of.precision + _GROWTH > DIGITS


def sum_in_pieces(column: Column, of: types.DecimalType) -> Column:
    """The sum as text for `joined`; null of no value."""
    scale = of.scale
    cut = f.udf(lambda value: pieces_of(scale, value), types.ArrayType(types.LongType()))(column)
    sums = [f.sum(cut[place].cast(types.DecimalType(DIGITS, 0))).cast("string") for place in range(_PIECES)]
    return f.when(sums[0].isNotNull(), f.concat_ws(",", f.lit(str(scale)), *sums))


def pieces_of(scale: int, value: Decimal | None) -> list[int] | None:
    """The digits of a decimal of ``scale`` places, the last ones first, each piece with its sign."""
    if value is None:
        return None
    with localcontext(prec=100):
        rest = abs(int(value.scaleb(scale)))
    pieces = []
    for _ in range(_PIECES):
        rest, piece = divmod(rest, _PIECE)
        pieces.append(-piece if value < 0 else piece)
    return pieces


def joined(text: str) -> Decimal:
    """The sum that `sum_in_pieces` gives as text."""
    scale, *pieces = map(int, text.split(","))
    with localcontext(prec=100):
        return Decimal(sum(piece * _PIECE**place for place, piece in enumerate(pieces))).scaleb(-scale)


def digits_for(total: Decimal, kinds: Sequence[types.DataType]) -> float:
    """How many digits hold both ``total`` and the sum of a value of each of ``kinds``, integers and decimals."""
    if not total.is_finite():
        return math.inf
    _, digits, exponent = total.as_tuple()
    places = [(kind.precision, kind.scale) if isinstance(kind, types.DecimalType) else (19, 0) for kind in kinds]
    whole = max(precision - scale for precision, scale in places) + len(str(len(kinds)))
    return max(whole, len(digits) + int(exponent)) + max(-int(exponent), *(scale for _, scale in places))


def add_up(total: Decimal, columns: Sequence[Column]) -> Column:
    """Whether the values of a row add up to ``total``; false where one is missing."""
    return f.udf(lambda *values: _add_up(total, values), types.BooleanType())(*columns)


def _add_up(total: Decimal, values: Sequence[Any]) -> bool:
    with localcontext(prec=100):
        return None not in values and sum(values) == total
