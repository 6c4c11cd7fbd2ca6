"""Operators without state (Kafka's methods of ``KStream``).

Begin with `operator`.
"""
