"""What a notebook shows is escaped."""

from __future__ import annotations

from hindstream.interactive.html import facts_html, rows_html


def test_whatever_is_shown_is_escaped() -> None:
    evil = "<script>&\"'"
    shown = facts_html(evil, {evil: evil, "none": None}) + rows_html([evil], [[evil], [1]])
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;&amp;&quot;&#x27;") == 5
    assert "none" not in shown
