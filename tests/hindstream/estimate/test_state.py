"""How state grows: what expires levels off, tables by Heaps' law."""

from __future__ import annotations

import pytest

from hindstream.estimate.evidence import StateAt
from hindstream.estimate.state import StateGrowth, kept_ms_of
from tests.surface.topology import surface


def growth(first: int, last: int, kept_ms: int | None) -> StateGrowth:
    """State after 1,000 records and 10 s, and after 2,000 and 20 s."""
    one, two = StateAt(1_000, 10_000, first, {"s": first}), StateAt(2_000, 20_000, last, {"s": last})
    return StateGrowth(one, two, {"s": kept_ms})


def test_what_expires_grows_until_the_first_of_it_expires() -> None:
    expires = growth(100, 150, kept_ms=30_000)
    at_last = [expires.bytes_after(records) for records in (1_000, 2_000, 3_000, 30_000)]
    assert at_last == pytest.approx([100, 200, 300, 300])


def test_what_had_begun_to_expire_stays_as_large() -> None:
    assert growth(100, 190, kept_ms=5_000).bytes_after(1e9) == pytest.approx(100)


@pytest.mark.parametrize(("last", "after_8_000"), [(200, 800), (100, 100), (141, 282), (90, 90), (900, 3_600)])
def test_tables_grow_as_their_keys_come_again(last, after_8_000) -> None:
    assert growth(100, last, kept_ms=None).bytes_after(8_000) == pytest.approx(after_8_000, rel=0.02)


def test_of_one_run_all_keys_are_taken_to_be_new() -> None:
    at = StateAt(1_000, 0, 100, {"s": 100})
    assert StateGrowth(at, at, {"s": None}).bytes_after(4_000) == pytest.approx(400)


def test_files_that_are_smaller_than_their_families_say_count_as_they_are() -> None:
    at = StateAt(1_000, 0, 50, {"s": 100})
    assert StateGrowth(at, at, {"s": None}).bytes_after(1_000) == pytest.approx(50)


def test_slices_write_what_they_alone_would_make() -> None:
    assert growth(100, 200, kept_ms=None).written_bytes(4_000, 4) == pytest.approx(400)
    assert growth(100, 190, kept_ms=5_000).written_bytes(4_000, 4) == pytest.approx(400)


def test_no_state_stays_none() -> None:
    at = StateAt(0, 0, 0, {})
    assert StateGrowth(at, at, {}).bytes_after(1e9) == 0


def test_how_long_each_store_keeps_its_entries() -> None:
    stores = [store for sub in surface().sub_topologies for store in sub.stores]
    by_kind: dict[str, set[bool]] = {}
    for store in stores:
        by_kind.setdefault(store.kind, set()).add(kept_ms_of(store) is not None)
    assert {kind for kind, expires in by_kind.items() if expires == {True}} == {
        "window", "session", "deduplication", "suppression-buffer", "join-buffer", "join-window", "held-records",
    }  # fmt: skip
    assert all(expires == {False} for kind, expires in by_kind.items() if kind in {"key-value", "versioned"})
    assert {kept_ms_of(store) for store in stores if store.kind == "deduplication"} == {30, 150}
