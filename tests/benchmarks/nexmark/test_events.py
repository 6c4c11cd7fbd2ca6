"""Ids and references follow nexmark's generator, which is put down here as it stands in Java, an event at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.nexmark import events
from benchmarks.nexmark.events import FIRST_ID, START_MS, Parameters
from benchmarks.nexmark.generator import Generator

PARAMETERS = Parameters(events=200_000)


def table(batches) -> pa.Table:
    records = pa.Table.from_batches(list(batches))
    fields = records["value"].combine_chunks()
    columns = {"key": records["key"], "timestamp": records["timestamp"].cast(pa.int64())}
    return pa.table(columns | {field.name: fields.field(field.name) for field in fields.type})


@pytest.fixture(scope="module")
def persons() -> pa.Table:
    return table(Generator(PARAMETERS).persons())


@pytest.fixture(scope="module")
def auctions() -> pa.Table:
    return table(Generator(PARAMETERS).auctions())


@pytest.fixture(scope="module")
def bids() -> pa.Table:
    return table(Generator(PARAMETERS).bids())


def java_last_person(event: int) -> int:
    epoch, offset = divmod(event, 50)
    return epoch * 1 + min(offset, 0)


def java_last_auction(event: int) -> int:
    epoch, offset = divmod(event, 50)
    if offset < 1:
        epoch, offset = epoch - 1, 2
    elif offset >= 4:
        offset = 2
    else:
        offset -= 1
    return epoch * 3 + offset


def test_the_last_person_and_auction_are_javas() -> None:
    ids = np.arange(1_000)
    assert events.last_person(ids).tolist() == [java_last_person(i) for i in range(1_000)]
    assert events.last_auction(ids).tolist() == [java_last_auction(i) for i in range(1_000)]


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(persons, auctions, bids) -> None:
    assert (len(persons), len(auctions), len(bids)) == (4_000, 12_000, 184_000)
    assert persons["id"].to_pylist() == list(range(FIRST_ID, FIRST_ID + 4_000))
    assert auctions["id"].to_pylist() == list(range(FIRST_ID, FIRST_ID + 12_000))
    for records, key in ((persons, "id"), (auctions, "id"), (bids, "auction")):
        assert records["key"].equals(records[key])
        assert records["timestamp"].equals(records["dateTime"].cast(pa.int64()))


def test_events_are_evenly_spaced_in_time(persons, bids) -> None:
    assert persons["timestamp"].to_pylist()[:3] == [START_MS, START_MS + 5, START_MS + 10]
    assert bids["timestamp"].to_pylist()[-1] == START_MS + 199_999 // 10
    slow = Parameters(events=100, events_per_second=0.5)
    assert table(Generator(slow).persons())["timestamp"].to_pylist() == [START_MS, START_MS + 100_000]


def size(records: pa.Table, numbers: int, *texts: str) -> float:
    lengths = sum(pc.utf8_length(records[text]).to_numpy() for text in texts)
    return float(np.mean(8 * numbers + lengths))


def test_sizes_are_right_on_average(persons, auctions, bids) -> None:
    named = ("name", "emailAddress", "creditCard", "city", "state", "extra")
    assert size(persons, 1, *named) == pytest.approx(200, rel=0.01)
    assert size(auctions, 6, "itemName", "description", "extra") == pytest.approx(500, rel=0.01)
    assert size(bids, 4, "extra") == pytest.approx(100, rel=0.01)


def share(of: np.ndarray) -> float:
    return float(of.mean())


def test_some_are_hot(auctions, bids) -> None:
    ids = events.event_ids(PARAMETERS, 0, PARAMETERS.events)
    of_bids, of_auctions = ids[events.are_bids(ids)], ids[events.are_auctions(ids)]
    hot_auction = FIRST_ID + events.last_auction(of_bids) // 100 * 100
    # 1 in 2 by choice, and of the others about 1 in 100, which are as likely as any that are open
    assert share(bids["auction"].to_numpy() == hot_auction) == pytest.approx(0.505, abs=0.01)
    hot_bidder = 2 * FIRST_ID + events.last_person(of_bids) // 100 * 100 + 1
    assert share(bids["bidder"].to_numpy() == hot_bidder) == pytest.approx(0.75, abs=0.01)
    hot_seller = FIRST_ID + events.last_person(of_auctions) // 100 * 100
    assert share(auctions["seller"].to_numpy() == hot_seller) == pytest.approx(0.75, abs=0.02)


def test_others_are_among_those_in_flight_or_a_few_ahead(auctions, bids) -> None:
    ids = events.event_ids(PARAMETERS, 0, PARAMETERS.events)
    ahead = bids["auction"].to_numpy() - FIRST_ID - events.last_auction(ids[events.are_bids(ids)])
    assert (ahead.min(), ahead.max()) == (-100, 10)
    ahead = auctions["seller"].to_numpy() - FIRST_ID - events.last_person(ids[events.are_auctions(ids)])
    assert ahead.max() == 10
    assert -1_000 <= ahead.min() < -900


def test_an_auction_lasts_while_a_hundred_are_opened_on_average(auctions) -> None:
    lasts_ms = auctions["expires"].cast(pa.int64()).to_numpy() - auctions["timestamp"].to_numpy()
    assert lasts_ms.min() >= 1
    assert lasts_ms.mean() == pytest.approx(5_000 / 30, rel=0.02)


def test_logarithms_of_prices_are_uniform(bids) -> None:
    exponents = np.log10(bids["price"].to_numpy() / 100)
    assert np.histogram(exponents, bins=6, range=(0, 6))[0] / len(bids) == pytest.approx(np.full(6, 1 / 6), abs=0.005)


def test_channels_have_their_urls(bids) -> None:
    assert share(pc.is_in(bids["channel"], pa.array(["Google", "Facebook", "Baidu", "Apple"])).to_numpy()) == (
        pytest.approx(0.5, abs=0.01)
    )
    pairs = bids.group_by(["channel"]).aggregate([("url", "count_distinct")])
    assert set(pairs["url_count_distinct"].to_pylist()) == {1}
    others = bids.filter(pc.starts_with(bids["channel"], "channel-"))
    found = pc.extract_regex(
        others["url"], r"^https://www\.nexmark\.com/[a-z_]+/[a-z_]+/[a-z_]+/item\.htm\?query=1(?P<id>.*)$"
    )
    assert found.null_count == 0
    assert share(pc.not_equal(pc.struct_field(found, "id"), "").to_numpy()) == pytest.approx(0.9, abs=0.02)
    eight = others.filter(pc.equal(others["channel"], "channel-8"))["url"].to_pylist()
    assert not eight or "channel_id" not in eight[0] or eight[0].endswith(f"&channel_id={1 << 28}")


def test_events_of_a_group_change_places() -> None:
    mixed = replace(PARAMETERS, events=2_000, out_of_order_group=1_000)
    ids = events.event_ids(mixed, 0, 2_000)
    assert ids[:3].tolist() == [0, 953, 906]
    assert sorted(ids.tolist()) == list(range(2_000))
    assert ids[:1_000].max() == 999
    times = table(Generator(mixed).bids())["timestamp"].to_numpy()
    assert (np.diff(times) < 0).any()
    assert len(table(Generator(mixed).persons())) == 40


def test_equal_seeds_make_equal_events(bids) -> None:
    assert table(Generator(PARAMETERS).bids()).equals(bids)
    assert not table(Generator(replace(PARAMETERS, seed=8)).bids())["price"].equals(bids["price"])
