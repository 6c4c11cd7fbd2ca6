from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.ordered_set import ABSENT, first_from, insert, last, ordered_set, remove
from statelib.kernels.compiled import helper


@helper
def _call(tree, operation, number):
    if operation == 0:
        insert(tree, number)
    elif operation == 1:
        remove(tree, number)
    elif operation == 2:
        return first_from(tree, number)
    return last(tree)


@given(st.lists(st.booleans(), max_size=70), st.data())
def test_it_is_a_set_in_order(members: list[bool], data: st.DataObject) -> None:
    tree = ordered_set(np.array(members, dtype=np.bool_))
    known = {number for number, member in enumerate(members) if member}
    for _ in range(data.draw(st.integers(0, 15)) if members else 0):
        number = data.draw(st.integers(0, len(members) - 1))
        if number in known and data.draw(st.booleans()):
            known.remove(number)
            _call(tree, 1, number)
        else:
            known.add(number)
            _call(tree, 0, number)
    for number in range(len(members) + 2):
        assert _call(tree, 2, number) == min((n for n in known if n >= number), default=ABSENT)
    assert _call(tree, 3, 0) == max(known, default=ABSENT)
