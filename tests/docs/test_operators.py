"""The pages about operators and serdes: their examples run, and print what the pages say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "operators").glob("*.md")), DOCS / "serdes.md"]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def examples(page: str) -> Iterator[tuple[str, str]]:
    """(code, what it prints): a block of code and the block of text after it."""
    blocks = BLOCK.findall(page)
    for (kind, code), (following, printed) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind == "python":
            yield code, printed if following == "text" else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_print_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = list(examples(page.read_text(encoding="utf-8")))
    assert found
    names: dict[str, object] = {}
    for code, expected in found:  # later blocks go on from what earlier ones have defined
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), names)
        assert printed.getvalue() == expected
