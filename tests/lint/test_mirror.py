"""Tests mirror the code's folders, so that who changes a room knows which tests are its own."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
ACROSS = {
    "campaigns", "completeness", "differential", "faults", "formats", "golden", "kafka", "lint", "peers", "reference",
    "setup", "surface",
}  # fmt: skip
"""Folders of tests that are about more than a room."""


def test_each_folder_of_tests_is_one_of_the_code() -> None:
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")} - {Path()}
    unknown = {
        folder.as_posix()
        for folder in folders
        if folder.parts[0] not in ACROSS and not (ROOT / folder).is_dir() and not (ROOT / "statelib" / folder).is_dir()
    }
    assert not unknown


def test_no_folder_of_tests_is_empty() -> None:
    faces = (ROOT / "tests").rglob("__init__.py")
    assert not [face.parent for face in faces if not any(path != face for path in face.parent.rglob("*.py"))]
