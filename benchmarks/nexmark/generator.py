"""Nexmark's events as Arrow batches: persons, auctions, bids.

Shapes, proportions, sizes, skew and times are those of the standard generator (github.com/nexmark/nexmark, Java); see
`benchmarks.nexmark.events` and `benchmarks.nexmark.strings`. Three things differ:

- The stream of random numbers is numpy's, and seeded: the original's is another with each start.
- Chances of one event are drawn in another order, which changes no distribution.
- There is one generator. The original splits its events among as many as there are source tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.nexmark import events
from benchmarks.nexmark.events import Ids, Parameters
from benchmarks.nexmark.strings import Fillers, words

TIME = pa.timestamp("ms", "UTC")
PERSON = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("emailAddress", pa.string()),
        ("creditCard", pa.string()),
        ("city", pa.string()),
        ("state", pa.string()),
        ("dateTime", TIME),
        ("extra", pa.string()),
    ]
)
AUCTION = pa.struct(
    [
        ("id", pa.int64()),
        ("itemName", pa.string()),
        ("description", pa.string()),
        ("initialBid", pa.int64()),
        ("reserve", pa.int64()),
        ("dateTime", TIME),
        ("expires", TIME),
        ("seller", pa.int64()),
        ("category", pa.int64()),
        ("extra", pa.string()),
    ]
)
BID = pa.struct(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("dateTime", TIME),
        ("extra", pa.string()),
    ]
)

_EVENTS_AT_ONCE = 1 << 19
_STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
_CITIES = pa.array(
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
)
_FIRST_NAMES = pa.array(
    ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
)
_LAST_NAMES = pa.array(["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"])
_FOUR_DIGITS = pa.array([f"{n:04}" for n in range(10_000)])
_HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
_CHANNELS = 10_000
_FIRST_CATEGORY, _CATEGORIES = 10, 5


class Generator:
    """Events in the order in which they arrive: equal parameters make equal events.

    Args:
        parameters: See `Parameters`.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._fillers = Fillers(parameters.seed)

    def persons(self) -> Iterator[pa.RecordBatch]:
        """Columns ``key`` (the id), ``value`` (`PERSON`), ``timestamp``."""
        return self._batches(0, events.are_persons, self._persons)

    def auctions(self) -> Iterator[pa.RecordBatch]:
        """Columns ``key`` (the id), ``value`` (`AUCTION`), ``timestamp``."""
        return self._batches(1, events.are_auctions, self._auctions)

    def bids(self) -> Iterator[pa.RecordBatch]:
        """Columns ``key`` (the auction), ``value`` (`BID`), ``timestamp``."""
        urls = Channels(np.random.default_rng([self._parameters.seed, _CHANNELS]))
        return self._batches(2, events.are_bids, lambda chance, ids: self._bids(chance, ids, urls))

    def _batches(
        self,
        kind: int,
        are_of_kind: Callable[[Ids], np.ndarray],
        make: Callable[[np.random.Generator, Ids], pa.StructArray],
    ) -> Iterator[pa.RecordBatch]:
        for begin in range(0, self._parameters.events, _EVENTS_AT_ONCE):
            ids = events.event_ids(self._parameters, begin, min(begin + _EVENTS_AT_ONCE, self._parameters.events))
            ids = ids[are_of_kind(ids)]
            value = make(np.random.default_rng([self._parameters.seed, kind, begin]), ids)
            columns = [value.field(0), value, _time(events.times_ms(self._parameters, ids))]
            yield pa.RecordBatch.from_arrays(columns, ["key", "value", "timestamp"])

    def _persons(self, chance: np.random.Generator, ids: Ids) -> pa.StructArray:
        count = len(ids)
        name = pc.binary_join_element_wise(_any(chance, _FIRST_NAMES, count), _any(chance, _LAST_NAMES, count), " ")
        mail = pc.binary_join_element_wise(words(chance, count, 7), "@", words(chance, count, 5), ".com", "")
        card = pc.binary_join_element_wise(*(_any(chance, _FOUR_DIGITS, count) for _ in range(4)), " ")
        city, state = _any(chance, _CITIES, count), _any(chance, _STATES, count)
        sizes = 8 + sum(np.asarray(pc.utf8_length(text), np.int64) for text in (name, mail, card, city, state))
        extra = self._fillers.fill(chance, count, sizes, self._parameters.person_bytes)
        person = pa.array(events.FIRST_ID + events.last_person(ids))
        time = _time(events.times_ms(self._parameters, ids))
        return pa.StructArray.from_arrays([person, name, mail, card, city, state, time, extra], fields=list(PERSON))

    def _auctions(self, chance: np.random.Generator, ids: Ids) -> pa.StructArray:
        count = len(ids)
        seller = pa.array(events.sellers(self._parameters, chance, ids))
        category = pa.array(_FIRST_CATEGORY + chance.integers(0, _CATEGORIES, count))
        first_bid = events.prices(chance, count)
        expires = _time(events.expiries_ms(self._parameters, chance, ids))
        item, description = words(chance, count, 20), words(chance, count, 100)
        reserve = pa.array(first_bid + events.prices(chance, count))
        sizes = 8 * 6 + sum(np.asarray(pc.utf8_length(text), np.int64) for text in (item, description))
        extra = self._fillers.fill(chance, count, sizes, self._parameters.auction_bytes)
        auction = pa.array(events.FIRST_ID + events.last_auction(ids))
        time = _time(events.times_ms(self._parameters, ids))
        fields = [auction, item, description, pa.array(first_bid), reserve, time, expires, seller, category, extra]
        return pa.StructArray.from_arrays(fields, fields=list(AUCTION))

    def _bids(self, chance: np.random.Generator, ids: Ids, channels: Channels) -> pa.StructArray:
        count = len(ids)
        auction = pa.array(events.bid_for(self._parameters, chance, ids))
        bidder = pa.array(events.bidders(self._parameters, chance, ids))
        price = pa.array(events.prices(chance, count))
        channel, url = channels.draw(chance, count)
        extra = self._fillers.fill(chance, count, 8 * 4, self._parameters.bid_bytes)
        time = _time(events.times_ms(self._parameters, ids))
        return pa.StructArray.from_arrays([auction, bidder, price, channel, url, time, extra], fields=list(BID))


class Channels:
    """Where bids come from: every second time one of four hot channels, else one of 10,000, each with its URL."""

    def __init__(self, chance: np.random.Generator) -> None:
        folders = [words(chance, len(_HOT_CHANNELS) + _CHANNELS, 5, "_") for _ in range(3)]
        base = pc.binary_join_element_wise("https://www.nexmark.com", *folders, "item.htm?query=1", "/")
        numbered = np.arange(_CHANNELS, dtype=np.uint32)
        reversed_ = np.abs(_reversed_bits(numbered).view(np.int32).astype(np.int64))
        with_id = pc.binary_join_element_wise("&channel_id=", pa.array(reversed_).cast(pa.string()), "")
        has_id = pa.array(chance.integers(0, 10, _CHANNELS) > 0)
        ends = pa.concat_arrays([pa.array([""] * len(_HOT_CHANNELS)), pc.if_else(has_id, with_id, "")])
        self._urls = pc.binary_join_element_wise(base, ends, "")
        self._names = pa.array([*_HOT_CHANNELS, *(f"channel-{n}" for n in numbered)])

    def draw(self, chance: np.random.Generator, count: int) -> tuple[pa.Array, pa.Array]:
        """Channel and URL of so many bids."""
        hot = chance.integers(0, len(_HOT_CHANNELS), count)
        others = len(_HOT_CHANNELS) + chance.integers(0, _CHANNELS, count)
        chosen = pa.array(np.where(chance.integers(0, 2, count) > 0, hot, others))
        return self._names.take(chosen), self._urls.take(chosen)


def _reversed_bits(numbers: np.ndarray) -> np.ndarray:
    """uint32, Java's ``Integer.reverse``."""
    bits = np.unpackbits(numbers.astype(">u4").view(np.uint8)).reshape(-1, 32)
    return np.packbits(bits[:, ::-1], axis=1).view(">u4").reshape(-1).astype(np.uint32)


def _any(chance: np.random.Generator, of: pa.Array, count: int) -> pa.Array:
    return of.take(pa.array(chance.integers(0, len(of), count)))


def _time(times_ms: Ids) -> pa.Array:
    return pa.array(times_ms).cast(TIME)
