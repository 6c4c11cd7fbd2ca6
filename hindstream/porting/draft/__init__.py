"""The first draft of a port: a job with the names, stores and topics of an application, whose functions are left open.

Begin with `draft`. It reads what ``Topology.describe()`` prints (`description`) and what Kafka's classes know, if there
is a jar (`knowledge`), recognises the calls of the DSL that have made it (`recognised`), and writes them down (`file`).
"""
