"""Ports of Kafka Streams applications: proved against the application's own topology, record for record.

Begin with `prove`. It takes a `sample` of a job's sources, lets the application's topology run it in a Java of its own
(`application`, `runner`, `protocol`) and the job here (`engine`), compares what both write (`outputs`), and explains
what differs (`explained`) or makes the input as small as it can be (`shrinking`).
"""
