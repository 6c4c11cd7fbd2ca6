"""What a page says against what was printed."""

from __future__ import annotations

import pytest

from tests.docs.typed import is_like


@pytest.mark.parametrize(
    ("printed", "page", "like"),
    [
        ("a  b \n\nc\n", "a b\nc\n", True),
        ("a.\nb\nc\n", "a.\n...\n", True),
        ("a.\n", "a.\n...\n", True),
        ("a\n", "...\na\n", True),
        ("x\na\n", "...\na\n", True),
        ("took 1.5 s\n", "took ... s\n", True),
        ("file /tmp/x/a.csv, row 1\n", "file ...a.csv, row 1\n", True),
        ("a b\n", "ab\n", False),
        ("ab\n", "a b\n", False),
        ("a\nb\n", "a\n", False),
        ("a\nc\n", "a\n...\nb\n", False),
    ],
)
def test_dots_stand_for_anything_and_nothing_else_does(printed: str, page: str, like: bool) -> None:
    assert is_like(printed, page) is like
