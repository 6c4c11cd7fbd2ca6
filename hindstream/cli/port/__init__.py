"""Ports of Kafka Streams applications: proved and drafted. Begin with `commands`."""
