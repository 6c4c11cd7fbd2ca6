"""Random topologies as plain data, run here and by Kafka Streams' own ``TopologyTestDriver``: nothing may differ."""
