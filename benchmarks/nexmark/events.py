"""Which event is a person, an auction or a bid, when it happens, and whom and what it refers to.

After ``GeneratorConfig``, ``PersonGenerator``, ``AuctionGenerator`` and ``BidGenerator`` of github.com/nexmark/nexmark
(6b3646c), with arrays of event ids in place of one. Of 50 events one is a person, three are auctions and 46 are bids,
in this order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

PERSONS, AUCTIONS, BIDS = 1, 3, 46
TOTAL = PERSONS + AUCTIONS + BIDS
FIRST_ID = 1000
"""Of persons and of auctions."""
LEAD = 10
"""How far ahead of the last person or auction a reference may be: what it refers to then comes later."""
HOT_EVERY = 100
"""Of so many persons or auctions, one is hot at a time."""


@dataclass(frozen=True)
class Parameters:
    """What is generated. The defaults are nexmark's (``NexmarkConfiguration``).

    Attributes:
        events: Persons, auctions and bids together.
        partitions: Of each topic.
        events_per_second: Of event time; evenly spaced, in whole milliseconds.
        out_of_order_group: Within so many events in a row, the order of arrival is another than that of time.
        in_flight_auctions: A bid that is not for the hot auction is for one of so many last ones, or `LEAD` ahead; an
            auction lasts as long as it takes to open so many, on average.
        active_people: An auction or bid that is not by a hot person is by one of so many last ones, or `LEAD` ahead.
        hot_auction_ratio: A bid is for the hot auction with the probability ``1 - 1 / ratio``.
        hot_seller_ratio: An auction is by the hot seller with that probability.
        hot_bidder_ratio: A bid is by the hot bidder with that probability.
        person_bytes: Average size of a person.
        auction_bytes: Average size of an auction.
        bid_bytes: Average size of a bid, its channel and URL not counted: so does the original.
        seed: Of all that is random.
    """

    events: int = 1_000_000
    partitions: int = 4
    events_per_second: float = 10_000.0
    out_of_order_group: int = 1
    in_flight_auctions: int = 100
    active_people: int = 1000
    hot_auction_ratio: int = 2
    hot_seller_ratio: int = 4
    hot_bidder_ratio: int = 4
    person_bytes: int = 200
    auction_bytes: int = 500
    bid_bytes: int = 100
    seed: int = 7


START_MS = 1_436_918_400_000
"""2015-07-15, as in Beam's Nexmark: the same events each time."""


def event_ids(parameters: Parameters, begin: int, end: int) -> Ids:
    """The ids of the events that arrive in the places ``begin`` to ``end``."""
    places, group = np.arange(begin, end), parameters.out_of_order_group
    return places // group * group + places * 953 % group


def times_ms(parameters: Parameters, ids: Ids) -> Ids:
    """When each event happens."""
    return START_MS + (ids * (1_000_000 / parameters.events_per_second)).astype(np.int64) // 1000


def are_persons(ids: Ids) -> NDArray[np.bool_]:
    """Which events are persons."""
    return ids % TOTAL < PERSONS


def are_auctions(ids: Ids) -> NDArray[np.bool_]:
    """Which events are auctions."""
    return ~are_persons(ids) & ~are_bids(ids)


def are_bids(ids: Ids) -> NDArray[np.bool_]:
    """Which events are bids."""
    return ids % TOTAL >= PERSONS + AUCTIONS


def last_person(ids: Ids) -> Ids:
    """The number of the last person at each event, from 0; at a person its own."""
    return ids // TOTAL * PERSONS + np.minimum(ids % TOTAL, PERSONS - 1)


def last_auction(ids: Ids) -> Ids:
    """The number of the last auction at each event, from 0, -1 before the first; at an auction its own."""
    return ids // TOTAL * AUCTIONS + np.clip(ids % TOTAL - PERSONS, -1, AUCTIONS - 1)


def sellers(parameters: Parameters, chance: np.random.Generator, ids: Ids) -> Ids:
    """Who opens each auction: mostly the first of the last hundred persons."""
    hot = last_person(ids) // HOT_EVERY * HOT_EVERY
    return FIRST_ID + _mostly(chance, parameters.hot_seller_ratio, hot, _active_person(parameters, chance, ids))


def bidders(parameters: Parameters, chance: np.random.Generator, ids: Ids) -> Ids:
    """Who bids: mostly the second of the last hundred persons.

    The original adds the first id of persons twice, so that no bidder is a person of that id; so do we.
    """
    hot = last_person(ids) // HOT_EVERY * HOT_EVERY + 1
    return 2 * FIRST_ID + _mostly(chance, parameters.hot_bidder_ratio, hot, _active_person(parameters, chance, ids))


def bid_for(parameters: Parameters, chance: np.random.Generator, ids: Ids) -> Ids:
    """The auction that each bid is for: every second time the first of the last hundred."""
    last = last_auction(ids)
    lowest = np.maximum(last - parameters.in_flight_auctions, 0)
    any_open = lowest + chance.integers(0, last - lowest + 1 + LEAD)
    return FIRST_ID + _mostly(chance, parameters.hot_auction_ratio, last // HOT_EVERY * HOT_EVERY, any_open)


def expiries_ms(parameters: Parameters, chance: np.random.Generator, ids: Ids) -> Ids:
    """When each auction ends: uniform up to twice the time in which ``in_flight_auctions`` are opened."""
    begins = times_ms(parameters, ids)
    horizon = times_ms(parameters, ids + parameters.in_flight_auctions * TOTAL // AUCTIONS) - begins
    return begins + 1 + chance.integers(0, np.maximum(horizon * 2, 1))


def prices(chance: np.random.Generator, count: int) -> Ids:
    """From 100 to 100 million, their logarithms uniform (``PriceGenerator``)."""
    return np.floor(10.0 ** (chance.random(count) * 6.0) * 100.0 + 0.5).astype(np.int64)


def _active_person(parameters: Parameters, chance: np.random.Generator, ids: Ids) -> Ids:
    people = last_person(ids) + 1
    active = np.minimum(people, parameters.active_people)
    return people - active + chance.integers(0, active + LEAD)


def _mostly(chance: np.random.Generator, ratio: int, hot: Ids, others: Ids) -> Ids:
    """``hot`` with the probability ``1 - 1 / ratio``."""
    return np.where(chance.integers(0, ratio, len(hot)) > 0, hot, others)
