"""To and from live Kafka Streams applications. Begin with `commands`."""
