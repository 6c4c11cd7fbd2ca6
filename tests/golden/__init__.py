"""Traces of real Kafka Streams applications, kept as files, and the examples in KIPs: both say what the answer is."""
