"""A load that is killed before or behind any of its effects: nothing is half there, and the same call ends it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from statelib.job.lake_topic import LakeTopic
from statelib.storage import Storage
from statelib.topics.archive import TopicArchive
from tests.ingest.lake import load, records_of, without_nulls, write_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.thorough

FIRST_MS = 1_356_998_400_000
EFFECTS: list[tuple[type, str]] = [
    (Storage, "put"), (Storage, "open_output"), (Storage, "delete"), (TopicArchive, "create"), (TopicArchive, "widen"),
    (TopicArchive, "append_at"), (TopicArchive, "commit"), (TopicArchive, "_transact"), (TopicArchive, "_add_feature"),
]  # fmt: skip


class Killed(BaseException):
    """Ends a load."""


class Killer:
    """Raises before the effect of a number, or behind it; counts those that pass."""

    def __init__(self, at: int | None, *, behind: bool = False) -> None:
        self.at, self.behind, self.passed = at, behind, 0

    def wrap(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            self.passed += 1
            is_it = self.passed == self.at
            if is_it and not self.behind:
                raise Killed
            made = effect(*args, **options)
            if is_it:
                raise Killed
            return made

        return called


def attempted(topic: LakeTopic, warehouse: Path, killer: Killer) -> bool:
    """Whether the load came to its end."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in EFFECTS:
            is_of_class = isinstance(owner.__dict__.get(name), classmethod)
            wrapped = killer.wrap(getattr(owner, name))
            patch.setattr(owner, name, staticmethod(wrapped) if is_of_class else wrapped)
        try:
            load(topic, warehouse, "quarantine", budget_bytes=1)
        except Killed:
            return False
    return True


def contents(warehouse: Path) -> Any:
    """What readers see; a field that is null and one that is not there yet are one."""
    names = [name for name in ("t", "t-quarantine") if (warehouse / f"topics/{name}/_delta_log").exists()]
    return {name: found for name in names if (found := without_nulls(records_of(warehouse, name)))}


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("earlier", [0, 1], ids=["of a new topic", "of one that grows"])
def test_a_load_that_is_killed_anywhere(tmp_path: Path, earlier: int, *, behind: bool) -> None:
    lake = tmp_path / "lake"
    topic = LakeTopic("t", str(lake), key="user", timestamp="at", timestamp_unit="ms", partitions=2)
    write_file(lake / "a.jsonl", [{"user": f"u{n}", "at": FIRST_MS + n, "n": n} for n in range(9)])
    if earlier:
        load(topic, tmp_path / "base", "quarantine")
    else:
        (tmp_path / "base").mkdir()
    (lake / "b.csv").write_text("user,at,n,day\nx,1356998400000,1,2013-01-01 00:00\ny,,2,2013-01-01 00:00\n")
    before = contents(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "clean")
    counting = Killer(None)
    assert attempted(topic, tmp_path / "clean", counting)
    wanted = contents(tmp_path / "clean")
    assert counting.passed > 5
    for at in range(1, counting.passed + 1):
        warehouse = tmp_path / f"killed-{at}"
        shutil.copytree(tmp_path / "base", warehouse)
        assert not attempted(topic, warehouse, Killer(at, behind=behind)), at
        seen = contents(warehouse)
        assert seen.get("t") in (before.get("t"), wanted["t"]), at
        load(topic, warehouse, "quarantine")
        assert contents(warehouse) == wanted, at
        assert load(topic, warehouse, "quarantine").number is None
        files = [path for path in (warehouse / "topics").rglob("*.parquet") if "_delta_log" not in path.parts]
        clean = [path for path in (tmp_path / "clean/topics").rglob("*.parquet") if "_delta_log" not in path.parts]
        assert len(files) == len(clean), at
