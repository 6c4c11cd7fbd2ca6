"""What `docs/getting-started.md` says is what happens, and its answer is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.first_answer import answer, followed, recomputed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_its_commands_print_what_it_says_and_its_answer_is_right(tmp_path: Path) -> None:
    followed(tmp_path)
    expected = recomputed(tmp_path)
    assert len(expected) > 4_000
    assert answer(tmp_path) == expected
