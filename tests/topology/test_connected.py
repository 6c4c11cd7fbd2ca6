from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statelib.topology.connected import connected

NAMES = "abcdefg"


def test_groups_hang_together_by_members_and_by_what_only_members_are_tied_to() -> None:
    ties = {"a": [], "b": ["store s"], "c": ["a"], "d": ["store s"], "e": ["store t"]}
    assert connected(ties) == [["a", "c"], ["b", "d"], ["e"]]


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from([*NAMES, "x", "y"]), max_size=3)))
def test_groups_are_what_can_be_reached_in_order_of_their_first_member(ties: dict[str, list[str]]) -> None:
    edges = {(member, other) for member, others in ties.items() for other in others}
    expected: list[list[str]] = []
    for member in ties:
        reached = {member}
        while more := {b for pair in edges for a, b in (pair, pair[::-1]) if a in reached} - reached:
            reached |= more
        group = [name for name in ties if name in reached]
        if group[0] == member:
            expected.append(group)
    assert connected(ties) == expected
