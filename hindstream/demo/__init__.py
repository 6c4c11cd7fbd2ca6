"""The demo: a year of flights from New York's three airports, joined with the weather, as delays by hour.

Its names are here, apart from `hindstream.demo.job`: who only looks at what has been done need not build the topology.

Begin with `job`.
"""

from zoneinfo import ZoneInfo

NAME = "flight-delays"
"""The job's."""

REFERENCE = "hindstream.demo.job:job"
"""Where `hindstream.load_job` finds it."""

FLIGHTS, WEATHER = "flights", "weather"
"""The topics that are read."""

FLIGHTS_ONCE, DELAYS = "flights-once", "delays-by-hour"
"""The topics that are written."""

LOCAL_TIME = ZoneInfo("America/New_York")
"""Where the airports are, and where a month begins."""
