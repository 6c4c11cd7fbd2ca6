"""A custom processor as a step of a topology: what makes it, and which stores it is connected with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError, HindstreamError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import OperatorContext
from statelib.operators.mappers.code_identity import describe_class, describe_factory
from statelib.operators.mappers.function_errors import calling
from statelib.operators.processors.definition import (
    FixedKeyProcessor,
    Processor,
    ProcessorSupplier,
    ValueTransformerWithKey,
)
from statelib.operators.processors.operator import ProcessOperator
from statelib.operators.processors.transforming import Transforming
from statelib.records.key_table import KeyTable
from statelib.stores.memory import MemoryBackend
from statelib.stores.spec import StoreSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from statelib.operators.processors.definition import (
        ProcessorSupplierLike,
        ValueTransformerSupplierLike,
    )
    from statelib.state import StoreBuilder


@dataclass(frozen=True, slots=True)
class Process:
    """``process`` and ``processValues``.

    Attributes:
        supplier: Makes the processor.
        stores: What it is connected with, but for ``shared``.
        node: Names the state of what it schedules.
        application_id: What it is told.
        key_type: Arrow type of the keys that it forwards; None: that of those it gets, windows included.
        value_type: Arrow type of the values; None: that of those it gets.
        fixed_key: ``processValues``: keys stay.
        shared: Stores that it is connected with and another processor has in its ``stores``.
        tables: The names of stores that it is connected with and a table or an aggregation has.
        of_all: Stores that it only reads, of which each task has all.
        low_level: Whether it has its turn with all such processors of its sub-topology, as in Kafka Streams.
        writes_global: Whether its own stores are such that others only read.
        transforms: Whether the supplier gives a `ValueTransformerWithKey`.
    """

    supplier: ProcessorSupplierLike | ValueTransformerSupplierLike
    stores: tuple[StoreBuilder[Any], ...]
    node: str
    application_id: str
    key_type: pa.DataType | None
    value_type: pa.DataType | None
    fixed_key: bool = False
    shared: tuple[StoreBuilder[Any], ...] = ()
    tables: tuple[str, ...] = ()
    of_all: tuple[StoreBuilder[Any], ...] = ()
    low_level: bool = False
    writes_global: bool = False
    transforms: bool = False

    def check(self, node: str) -> None:
        """Makes a processor and lets it begin, over empty stores in memory: what it asks for in vain is refused here.

        Raises:
            ConfigurationError: See `build`.
        """
        self.build(OperatorContext(node, MemoryBackend(), KeyTable(), NodeMetrics())).close()

    def asks_for(self, stores: Sequence[StoreBuilder[Any]]) -> tuple[StoreBuilder[Any], ...]:
        """Those of some stores that each task has whole for which the processor asks when it begins."""
        context = OperatorContext(self.node, MemoryBackend(), KeyTable(), NodeMetrics())
        try:
            running = replace(self, of_all=tuple(stores)).build(context)
        except HindstreamError:
            return ()  # `check` tells why
        running.close()
        return tuple(store for store in stores if store.name in running.asked)

    def build(self, context: OperatorContext) -> ProcessOperator:
        """The running operator.

        Raises:
            ConfigurationError: The supplier gives no new processor, or its ``init`` fails.
        """
        return ProcessOperator(self, context)

    def describe(self) -> Mapping[str, object]:
        """The processor's code, its stores and types."""
        supplier = self.supplier
        by_class = isinstance(supplier, ProcessorSupplier)
        shared = {"shared": [dict(store.describe()) for store in self.shared]} if self.shared else {}
        tables = {"tables": list(self.tables)} if self.tables else {}
        of_all = {"of_all": [dict(store.describe()) for store in self.of_all]} if self.of_all else {}
        together = {"low_level": True} if self.low_level else {}
        return {
            "operator": "transform_values" if self.transforms else "process_values" if self.fixed_key else "process",
            "supplier": describe_class(type(supplier)) if by_class else describe_factory(supplier),  # type: ignore[arg-type]
            "connected": [dict(store.describe()) for store in self.stores],
            **shared,
            **tables,
            **of_all,
            **together,
            "key_type": None if self.key_type is None else str(self.key_type),
            "value_type": None if self.value_type is None else str(self.value_type),
        }

    def state_stores(self) -> Sequence[StoreSpec]:
        """The stores', and that of what is scheduled."""
        scheduled = StoreSpec(self.schedule_family, "punctuation", (self.schedule_family,))
        return (*(store.spec() for store in self.stores), scheduled)

    @property
    def schedule_family(self) -> str:
        """Where what is scheduled is kept."""
        return f"{self.node}.punctuation"

    def new_processor(self) -> Processor | FixedKeyProcessor:
        """A processor of the kind that is wanted.

        Raises:
            ConfigurationError: The supplier gives something else.
        """
        supplier: Any = self.supplier.get if isinstance(self.supplier, ProcessorSupplier) else self.supplier
        with calling("a processor's supplier", [supplier], node=self.node):
            processor = supplier()
        wanted: type[Any] = FixedKeyProcessor if self.fixed_key else Processor
        if self.transforms:
            wanted = ValueTransformerWithKey
        if not isinstance(processor, wanted):
            raise ConfigurationError(
                f"the supplier gives a {type(processor).__name__}, not a {wanted.__name__}",
                node=self.node,
                next_step=f"derive it from {wanted.__name__}",
            )
        return Transforming(processor) if self.transforms else processor
