"""The files of a project without a topic: three years of made-up orders as CSV, as a shop's database might export them.

They are the same every time, and as files are: some orders come twice, some after later ones, a few rows are bad, and
the last year has a column more. Amounts are multiples of a quarter, so their sums are exact in any order.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

YEARS = (2022, 2023, 2024)
COLUMNS = ("order_id", "ordered_at", "country", "customer", "amount")
NEW_COLUMN = "channel"
"""Of the last year."""

_COUNTRIES = ("DE", "FR", "IT", "NL", "NO", "PL")
_ORDERS_PER_COUNTRY = (7, 5, 4, 3, 1, 2)
_CHANNELS = ("web", "web", "app", "phone")
_MINUTES_BETWEEN = 140
"""On average."""

_BAD_TIMES = {700: "", 2_100: "31.12.2022 25:61", 6_001: "unknown"}
"""By number of the order."""


def sample_files() -> dict[str, str]:
    """The files, by their paths in the project."""
    chance = random.Random(2022)  # noqa: S311 - made-up data, the same every time
    files = {}
    number = 0
    time = datetime(YEARS[0], 1, 1, tzinfo=UTC)
    for year in YEARS:
        is_last = year == YEARS[-1]
        lines: list[tuple[datetime, str]] = []
        while time.year == year:
            number += 1
            line = _line(number, time, chance, has_channel=is_last)
            # Some arrive up to two hours after they were made, and some are sent again within the hour.
            arrives = time + timedelta(minutes=chance.choice((0,) * 19 + (120,)) * chance.random())
            lines.append((arrives, line))
            if number % 40 == 0:
                lines.append((arrives + timedelta(minutes=60 * chance.random()), line))
            time += timedelta(minutes=1 + int(2 * _MINUTES_BETWEEN * chance.random()))
        header = ",".join((*COLUMNS, NEW_COLUMN) if is_last else COLUMNS)
        arrived = [line for _, line in sorted(lines, key=lambda one: one[0])]
        files[f"data/orders-{year}.csv"] = "\n".join((header, *arrived)) + "\n"
    return files


def _line(number: int, time: datetime, chance: random.Random, *, has_channel: bool) -> str:
    (country,) = chance.choices(_COUNTRIES, _ORDERS_PER_COUNTRY)
    values = [
        f"o-{number:05}",
        _BAD_TIMES.get(number, f"{time:%Y-%m-%d %H:%M:%S}"),
        country,
        f"c-{chance.randrange(900):03}",
        f"{chance.randrange(20, 800) / 4:.2f}",
    ]
    return ",".join([*values, chance.choice(_CHANNELS)] if has_channel else values)
