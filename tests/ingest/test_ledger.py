"""The account of what was loaded: complete however many loads there were, and never more than a few documents long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelib.commits.archives import open_archive
from statelib.errors.fault_points import observed
from statelib.errors.kinds import CorruptedDataError
from statelib.ingest import ledger
from statelib.ingest.ledger import Ingest, Ledger
from statelib.job.lake_topic import LakeTopic
from statelib.storage import Storage
from tests.ingest.lake import load, records_of, write_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough

AT = 1_356_998_400_000


class Killed(BaseException):
    """Ends a load at a step."""


def load_one(folder: Path, n: int, kill_at: str | None = None) -> None:
    write_file(folder / f"lake/{n:03d}.jsonl", [{"n": n, "at": AT + n}])

    def kill(name: str) -> None:
        if name == kill_at:
            raise Killed

    topic = LakeTopic("t", f"{folder}/lake", timestamp="at", partitions=1)
    with observed(kill):
        try:
            load(topic, folder / "w")
        except Killed:
            assert kill_at is not None


def the_ledger(folder: Path) -> Ledger:
    warehouse = Storage(str(folder / "w"))
    return Ledger(warehouse, "t", open_archive(warehouse, "t"))


@settings(max_examples=12)
@given(
    kills=st.lists(st.sampled_from([None, None, "ingest.accounted", "ingest.committed"]), min_size=1, max_size=17),
    every=st.sampled_from([2, 3, 5]),
)
def test_it_knows_all_files_by_few_documents(
    tmp_path_factory: pytest.TempPathFactory, kills: list[str | None], every: int
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ledger, "_FULL_EVERY", every)
        for n, kill_at in enumerate([*kills, None]):
            load_one(folder, n, kill_at)
        found = the_ledger(folder)
        assert [r["value"]["n"] for r in records_of(folder / "w", "t")] == list(range(len(kills) + 1))
        paths = [f"{folder}/lake/{n:03d}.jsonl" for n in range(len(kills) + 1)]
        assert list(found.files()) == list(found.known()) == paths
        assert len(found.loads) <= every
        documents = list((folder / "w/topics/t/_ingests").iterdir())
        assert len(documents) <= 2 * every + 1
        patched.setattr(ledger, "_FULL_EVERY", 1000)  # as they are read does not depend on how they were written
        assert list(the_ledger(folder).files()) == paths


def test_a_document_that_names_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_FULL_EVERY", 3)
    for n in range(4):
        load_one(tmp_path, n)
    folder = tmp_path / "w/topics/t/_ingests"
    first, second, third, _ = sorted(folder.iterdir())
    full = Ingest.decode(third.read_bytes(), file=str(third))
    assert full.earlier is not None
    assert [(file.path, file.records, file.is_rewritten) for file in full.earlier] == [
        (f"{tmp_path}/lake/{n:03d}.jsonl", 1, False) for n in range(2)
    ]
    first.unlink()
    second.unlink()
    assert len(the_ledger(tmp_path).files()) == 4
    third.unlink()
    with pytest.raises(CorruptedDataError, match="the record of load 3 of the topic is missing"):
        the_ledger(tmp_path)
