"""Pages as tests read them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


def text_of(html: str) -> str:
    """What a person reads, still escaped."""
    return re.sub(r"\s+", " ", re.sub(r"<(style|title)>.*?</\1>|<[^>]*>", " ", html, flags=re.DOTALL))


class Balance(HTMLParser):
    """Fails where an end tag is not that of the innermost open element."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def drawings_of_whole(html: str) -> list[ET.Element]:
    """The charts of a page, which is well-formed, has no script, and needs nothing else; each has a label."""
    balance = Balance()
    balance.feed(html)
    assert balance.open == []
    assert "<script" not in html
    assert set(re.findall(r"(?:src|href|url)[=(][\"']?(?:https?:)?//[^\"' )]*", html)) == set()
    drawings = [ET.fromstring(drawing) for drawing in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]
    assert all(drawing.attrib["aria-label"] for drawing in drawings)
    return drawings


class _Tables(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._in_cell = False

    def handle_starttag(self, tag, attrs) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag) -> None:
        if tag in {"td", "th"}:
            self._in_cell = False

    def handle_data(self, data) -> None:
        if self._in_cell:
            self.tables[-1][-1][-1] += data


def tables_of(html: str) -> list[list[list[str]]]:
    """The cells of each row of each table, as texts."""
    parser = _Tables()
    parser.feed(html)
    return [[[cell.strip() for cell in row] for row in table] for table in parser.tables]
