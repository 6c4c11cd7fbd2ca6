from __future__ import annotations

from benchmarks.contestants.quix import Quix
from benchmarks.works import WORKS


def test_an_answer_is_read_from_its_lines(tmp_path) -> None:
    (tmp_path / "answer.jsonl").write_text(
        '{"key": "a", "timestamp": 60000, "start": 60000, "end": 120000, "clicks": 2, "amount": 7}\n'
        '{"key": "b", "timestamp": 0, "start": 0, "end": 60000, "clicks": 1, "amount": 5}\n'
    )
    assert Quix().answer(WORKS["W3"], tmp_path).to_pylist() == [
        {"key": "a", "window_start": 60_000, "clicks": 2, "amount": 7},
        {"key": "b", "window_start": 0, "clicks": 1, "amount": 5},
    ]


def test_no_lines_are_an_empty_answer(tmp_path) -> None:
    (tmp_path / "answer.jsonl").touch()
    assert Quix().answer(WORKS["W4"], tmp_path).equals(WORKS["W4"].answer.empty_table())
