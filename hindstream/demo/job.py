"""The demo's job: how late did flights leave, hour by hour, and what was the wind like?

``flights`` without what was delivered twice is ``flights-once``. Each of these is joined with the weather that was
valid when it was to leave, and counted by airport and hour of scheduled departure; one final result an hour is in
``delays-by-hour``.

Both topics are keyed by the airport of origin and have the same number of partitions, so a flight meets its weather
without a repartition. Three keys keep at most three tasks busy: this is the shape of the data, and what a live
application would do with it too.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from hindstream import (
    BufferConfig,
    Deduplicated,
    Job,
    Joined,
    Materialized,
    Named,
    Produced,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    count,
    expect,
    max_,
    mean_,
    sum_,
)
from hindstream.demo import DELAYS, FLIGHTS, FLIGHTS_ONCE, NAME, WEATHER
from hindstream.demo.figures import NOTES, figures

DEDUPLICATION_INTERVAL = timedelta(days=2)
"""Longer than any redelivery and any delay."""

HISTORY_RETENTION = timedelta(days=2)
"""A flight is taken up when it has left, and asks for the weather at its scheduled time: up to 22 hours before."""

HOUR = timedelta(hours=1)
GRACE = timedelta(hours=12)
"""27 flights of the year leave when this has passed since the end of their hour: late records, counted, and not in the
result. Without a bound an hour's result would never be final."""

FASTEST_WIND_MPH = 150.0
"""An audit that finds more fails. The weather has an observation of 1,048 mph, an instrument's error, in an hour of the
night without flights."""


def job() -> Job:
    """The demo's job."""
    builder = StreamsBuilder(NAME)
    weather = builder.table(
        WEATHER,
        Materialized.as_(Stores.persistent_versioned_key_value_store("weather-by-origin", HISTORY_RETENTION)),
    )
    flights = builder.stream(FLIGHTS).deduplicate_by_key_value(
        "flight_id", DEDUPLICATION_INTERVAL, Deduplicated.as_("flights-once")
    )
    flights.to(FLIGHTS_ONCE, Produced(name="each-flight-once"))
    (
        flights.left_join(  # a flight counts even where no weather is known
            weather,
            {
                "dep_delay": "left.dep_delay",
                "cancelled": pc.field("left", "dep_delay").is_null().cast(pa.int64()),
                "wind_speed": "right.wind_speed",
            },
            Joined.as_("flights-and-weather"),
        )
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(HOUR, GRACE))
        .aggregate(
            {
                "flights": count(),
                "cancelled": sum_("cancelled"),
                "mean_delay": mean_("dep_delay"),
                "max_delay": max_("dep_delay"),
                "mean_wind": mean_("wind_speed"),
                "max_wind": max_("wind_speed"),
            },
            Materialized.as_("delays"),
            Named.as_("delays-so-far"),
        )
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()).with_name("final-delays"))
        .to_stream()
        .to(DELAYS, Produced(name="delays-by-hour"))
    )
    between, larger = "expect_column_values_to_be_between", "expect_column_pair_values_a_to_be_greater_than_b"
    return Job(
        NAME,
        builder.build(),
        expectations={
            FLIGHTS_ONCE: (
                expect("expect_column_values_to_be_in_set", column="key", value_set=["EWR", "JFK", "LGA"]),
                expect("expect_column_values_to_not_be_null", column="value.flight_id"),
                expect("expect_column_values_to_be_unique", column="value.flight_id"),
            ),
            DELAYS: (
                expect("expect_column_values_to_be_in_set", column="key.key", value_set=["EWR", "JFK", "LGA"]),
                expect("expect_column_values_to_not_be_null", column="key.key"),
                expect("expect_column_values_to_not_be_null", column="key.window_start"),
                expect("expect_column_values_to_not_be_null", column="value.flights"),
                expect(between, column="value.flights", min_value=1, max_value=60),
                expect(between, column="value.cancelled", min_value=0),
                expect(larger, column_A="value.flights", column_B="value.cancelled", or_equal=True),
                expect(between, column="value.max_delay", min_value=-60, max_value=24 * 60),
                expect(larger, column_A="value.max_delay", column_B="value.mean_delay", or_equal=True),
                expect(between, column="value.max_wind", min_value=0, max_value=FASTEST_WIND_MPH),
            ),
        },
        figures=figures,
        notes=NOTES,
    )
