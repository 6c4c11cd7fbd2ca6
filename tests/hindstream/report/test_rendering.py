"""Templates are compiled once for a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hindstream.report import rendering
from hindstream.report.kept_templates import KeptTemplates
from tests.hindstream.compiled_templates import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = "style.css"


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    rendering._templates.cache_clear()
    yield
    rendering._templates.cache_clear()


def test_a_process_compiles_none_that_another_one_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = compiled(monkeypatch)
    rendering.load_templates()
    assert {PAGE, "run.html.j2", "job.html.j2"} <= set(names)
    text = rendering.render(PAGE, {})
    rendering._templates.cache_clear()
    names.clear()
    rendering.load_templates()
    assert (names, rendering.render(PAGE, {})) == ([], text)


def test_a_damaged_one_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = rendering.render(PAGE, {})
    (kept,) = (tmp_path / "hindstream" / "templates" / "report").iterdir()
    for content in (b"", kept.read_bytes()[:-9], b"another thing"):
        kept.write_bytes(content)
        rendering._templates.cache_clear()
        assert rendering.render(PAGE, {}) == text


@pytest.mark.parametrize("is_there", [False, True])
def test_pages_are_rendered_where_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    if is_there:  # and gone when it is written to
        kept = KeptTemplates(str(tmp_path / "gone"))
        monkeypatch.setattr(rendering, "kept_templates", lambda of: kept)
    assert rendering.render(PAGE, {})
    assert not (tmp_path / "gone").exists()
