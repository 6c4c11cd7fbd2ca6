"""Puts a custom processor into a topology (KIP-820)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import place_of_call
from statelib.operators.processors.definition import ProcessorSupplier
from statelib.operators.processors.process import Process
from statelib.topology.nodes import Consumed, Described, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from statelib.dsl.graph import Role
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.options import Named
    from statelib.operators.processors.definition import ProcessorSupplierLike, ValueTransformerSupplierLike
    from statelib.state import StoreBuilder


def add_process(
    builder: InternalStreamsBuilder,
    parent: str,
    supplier: ProcessorSupplierLike,
    store_names: Sequence[str | Named],
    *,
    key_type: pa.DataType | None,
    value_type: pa.DataType | None,
    fixed_key: bool,
    named: Named | None,
) -> str:
    """The node of ``process`` or, with ``fixed_key``, of ``processValues``.

    Raises:
        ConfigurationError: A store is not there, or the node is named twice.
    """
    named_stores = [store for store in store_names if isinstance(store, str)]
    if len(named_stores) < len(store_names):  # the first name has become ``named`` (`statelib.calls`)
        raise ConfigurationError("the node is named twice", next_step="give one Named", **place_of_call())
    kind = "KSTREAM-PROCESSVALUES" if fixed_key else "KSTREAM-PROCESSOR"
    name = builder.new_name(kind) if named is None else named.name
    own = supplier.stores() if isinstance(supplier, ProcessorSupplier) else ()
    for store in own:
        builder.add_state_store(store)
    names = list(dict.fromkeys([*named_stores, *(store.name for store in own)]))
    stores = builder.state_stores.connect(names, name, tables=builder.stores_of_tables)
    types = (key_type, value_type, fixed_key)
    spec = Process(supplier, stores.own, name, builder.application_id, *types, stores.shared, stores.tables)
    role: Role = "process-values" if fixed_key else "process"
    return builder.add_processor(name, [parent], spec, stores=names, role=role)


def add_transform(
    builder: InternalStreamsBuilder,
    parent: str,
    supplier: ValueTransformerSupplierLike,
    store_names: Sequence[str],
    value_type: pa.DataType | None,
    table: str,
    store: str | None,
) -> str:
    """The node that transforms a table's values with stores; ``table``, ``store``: what the new one and its store are.

    Raises:
        ConfigurationError: A store is not there.
    """
    name = f"{table}-TRANSFORMER"
    own = supplier.stores() if isinstance(supplier, ProcessorSupplier) else ()
    for added in own:
        builder.add_state_store(added)
    names = list(dict.fromkeys([*store_names, *(added.name for added in own)]))
    stores = builder.state_stores.connect(names, name, tables=builder.stores_of_tables)
    types = (None, value_type, True)
    spec = Process(supplier, stores.own, name, builder.application_id, *types, stores.shared, stores.tables)
    shown = Described(table, (parent,), (*(() if store is None else (store,)), *names))
    return builder.add_processor(name, [parent], replace(spec, transforms=True), stores=names, described=[shown])


def add_global_store(
    builder: InternalStreamsBuilder,
    store: StoreBuilder[Any],
    topic: str,
    consumed: Consumed | None,
    supplier: ProcessorSupplierLike,
) -> None:
    """See `StreamsBuilder.add_global_store` (Kafka's ``InternalStreamsBuilder.addGlobalStore``)."""
    builder.add_state_store(store)
    names = builder.source_names(consumed)
    stores = builder.state_stores.connect([store.name], names.table, tables={})
    spec = Process(supplier, stores.own, names.table, builder.application_id, None, None, writes_global=True)
    source = Source(names.source, topic, consumed or Consumed(), reading="bootstrap")
    builder.add_global_table(source, names.table, spec, store.name)
