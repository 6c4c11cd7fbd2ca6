"""Nexmark, whole: the generator, the peers' forms of the queries, and what runs and compares them.

The queries themselves are in ``examples/nexmark``. ``./dev bench --nexmark`` measures them.
"""
