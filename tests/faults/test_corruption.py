"""Damage to every kind of file of a whole job: a case or two of each; `tests.faults.corruption` runs any number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.effort import every_other, one_in
from tests.faults.corruption import KINDS, Case, Corruption, Damage

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.thorough

HARMLESS = {
    "last checkpoint", "head hint", "history of the report", "record of the cache", "mark of what has expired",
}  # fmt: skip
"""Nothing rests on these: they are hints, made anew, or say all by their name."""

HEALED = {"cached state file", "cached state file, unseen"}


@pytest.fixture(scope="module")
def corruption(tmp_path_factory: pytest.TempPathFactory) -> Corruption:
    return Corruption(tmp_path_factory.mktemp("corruption"))


@pytest.mark.parametrize("kind", one_in(3, KINDS))
def test_damage_is_named_or_changes_nothing(corruption: Corruption, kind: str) -> None:
    outcome = corruption.run(Case(kind, 1))
    assert outcome.what == "harmless" or kind not in HARMLESS | HEALED


@pytest.mark.parametrize("kind", every_other((kind for kind in KINDS if kind not in HARMLESS | HEALED), first=1))
def test_a_file_of_each_kind_that_is_cut_off_is_named(corruption: Corruption, kind: str) -> None:
    """But for those that nobody reads any more; of each kind these are a few."""
    assert any(corruption.run(Case(kind, seed), Damage("cut", 40, 0)).what == "named" for seed in range(3, 9))


def test_every_kind_is_there(corruption: Corruption) -> None:
    """So that no pattern goes stale."""
    assert all(corruption.files(kind) for kind in KINDS)


@pytest.mark.parametrize(
    "damage", [Damage("flip", 9, 1), Damage("cut", 1, 1), Damage("zero", 1, 2), Damage("swap", 0, 1)]
)
def test_damage(damage: Damage) -> None:
    damaged = {"flip": b"a`cd", "cut": b"a", "zero": b"a\0\0d", "swap": b"bacd"}
    assert damage.applied(b"abcd") == damaged[damage.how]
