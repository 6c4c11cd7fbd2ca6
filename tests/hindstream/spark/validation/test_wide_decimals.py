from __future__ import annotations

from decimal import Decimal, localcontext

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types

from hindstream.spark.validation.wide_decimals import can_overflow, digits_for, joined, pieces_of


@given(st.integers(0, 38), st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1))
def test_pieces_add_up_to_the_sum(scale: int, unscaled: list[int]) -> None:
    with localcontext(prec=100):
        values = [Decimal(number).scaleb(-scale) for number in unscaled]
        pieces = [pieces_of(scale, value) or [] for value in values]
        assert all(abs(piece) < 2**63 for each in pieces for piece in each)
        text = ",".join(map(str, [scale, *map(sum, zip(*pieces, strict=True))]))
        assert joined(text) == sum(values)


def test_what_needs_more_than_spark_has() -> None:
    assert [can_overflow(of) for of in (types.DecimalType(28, 2), types.DecimalType(29, 2), types.LongType())] == [
        False,
        True,
        False,
    ]
    wide = [types.DecimalType(38, 10), types.DecimalType(10, 2)]
    narrow = [types.LongType(), types.DecimalType(10, 2)]
    assert digits_for(Decimal(1), wide) == 39
    assert digits_for(Decimal("1.105"), narrow) == 23
    assert digits_for(Decimal("1e40"), narrow) == 43
    assert digits_for(Decimal("-Infinity"), narrow) > 38
