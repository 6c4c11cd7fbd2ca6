"""Gives the custom processors of random programs stores: of their own, of each other, of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.differential.making import Made, Making
    from tests.differential.program import Step


def with_store(making: Making, made: Made, step: Step) -> int:
    """Maybe gives a processor a store, of its own or another's, and its realm, which is then that of all of these."""
    if len(made.windows) > 1 or making.rng.random() < 0.4:  # Java shows a window in a window in another way
        return made.realm
    shared = [name for name, realm in making.stores.items() if making.realms.may_meet(realm, made.realm)]
    if shared and making.rng.random() < 0.8:
        step["uses"] = making.rng.choice(shared)
        making.stores[step["uses"]] = making.realms.meet(making.stores[step["uses"]], made.realm)
    else:
        step["uses"] = f"of-processors{len(making.steps)}"
        making.stores[step["uses"]] = made.realm
    return making.stores[step["uses"]]


def with_table_store(making: Making, made: Made, step: Step) -> int | None:
    """Maybe gives a processor the store of a table, and its realm; None: it gives none."""
    tables = [
        table
        for table in making.pool
        if table.kind == "table"
        and "store" in making.steps[table.step]
        and not (table.versioned or table.windows or made.windows)
        and making.realms.may_meet(table.realm, made.realm)
    ]
    if not tables or making.rng.random() < 0.7:
        return None
    table = making.rng.choice(tables)
    step["table"] = making.steps[table.step]["store"]
    step["writes"] = table.is_text and making.rng.random() < 0.5
    return making.realms.meet(table.realm, made.realm)
