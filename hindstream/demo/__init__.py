"""The demo: a year of flights from New York's three airports, joined with the weather, as delays by hour."""
