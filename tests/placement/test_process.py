"""The process id of a state directory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from statelib.errors.kinds import ConfigurationError
from statelib.placement.process import FILE_NAME, decode, encode, process_id

if TYPE_CHECKING:
    from pathlib import Path

ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
GOLDEN = b'{"format_version": 1, "process_id": "00112233-4455-6677-8899-aabbccddeeff"}\n'


def test_golden_bytes(tmp_path: Path) -> None:
    assert encode(ID) == GOLDEN
    assert decode(GOLDEN, file=tmp_path) == ID


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(GOLDEN.replace(b'"format_version": 1', b'"format_version": 2'))
    with pytest.raises(ConfigurationError, match="format version 2, this Hindstream knows up to 1"):
        process_id(tmp_path, uuid4)


def test_it_outlives_those_who_ask(tmp_path: Path) -> None:
    first = process_id(tmp_path / "state", uuid4)
    assert process_id(tmp_path / "state", uuid4) == first
    assert [file.name for file in (tmp_path / "state").iterdir()] == [FILE_NAME]


def test_an_empty_disk_is_another_host(tmp_path: Path) -> None:
    assert process_id(tmp_path / "one", uuid4) != process_id(tmp_path / "two", uuid4)


def test_all_who_ask_for_the_first_time_get_the_same(tmp_path: Path) -> None:
    for n in range(20):
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _, n=n: process_id(tmp_path / str(n), uuid4), range(8)))
        assert len(set(found)) == 1


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"format_version": 1}', GOLDEN[:40], b"\xff" * 20])
def test_a_damaged_one_is_made_anew(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(damaged)
    assert process_id(tmp_path, lambda: ID) == ID
    assert (tmp_path / FILE_NAME).read_bytes() == GOLDEN


def test_a_directory_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(ConfigurationError, match="process id"):
        process_id(tmp_path, uuid4)
