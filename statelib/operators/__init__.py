"""Operators: a room for each family, from what the user writes to the bytes of its store.

In each room the files have the same names: `definition` (what the user writes), `operator`, `kernel` or ``*_kernel``
(compiled loops), `working_set` (what is in memory from flush to flush), `store`, `codec` (the bytes), `changelog` (what
is logged, exported, imported, restored: Kafka's bytes), `snapshot` (the store as data). The families stand above one
another as ``pyproject.toml`` says; what they share is here. Begin with `base`, then with any `operator`.
"""
