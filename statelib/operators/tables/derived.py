"""A table that is made of another, value by value: filtered, mapped, transformed.

Each change takes the step with its new and its old value (Kafka's ``KTableFilter``, ``KTableMapValues``,
``KTableTransformValues``).
With a store of its own the table keeps what comes out, and its old values are what it had there.

What a filter leaves out becomes a deletion. If the key had nothing before either, there is nothing to delete: then the
change does not go on, provided that old values are known, that is, if the table above has a store or something below
needs them. Where they are not known, and behind a versioned table (whose history must be complete), all go on. What
does not go on is no version in a versioned store of the table either.

Accounts: ``forwarded``, with a store ``stored``; ``filtered``, ``refused``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.asking import Asking
from statelib.operators.base import StorelessSpec
from statelib.operators.stateless.operator import Stateless
from statelib.operators.tables.change import as_stream, concat_changes, without_empty
from statelib.operators.tables.steps import columns_of
from statelib.operators.tables.writer import VersionedTableWriter, WritingOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from statelib.operators.base import OperatorContext
    from statelib.operators.tables.steps import TableStep
    from statelib.operators.tables.writer import TableStore
    from statelib.records.batch import Batch, Uptake
    from statelib.stores.spec import StoreSpec


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """Makes a table of another.

    Attributes:
        step: What happens to each value.
        store: Where the table is kept; None: nowhere.
        needs_prior: Whether changes say what they replace.
        versioned_parent: Whether the table above is versioned.
        for_latest: Whether they say so for the sake of what is the latest alone, where Kafka Streams asks nothing.
    """

    step: TableStep
    store: TableStore | None = None
    needs_prior: bool = False
    versioned_parent: bool = False
    for_latest: bool = False

    @property
    def leaves_out_empty(self) -> bool:
        """Whether changes from nothing to nothing end here."""
        return self.step.is_filter and self.needs_prior and not (self.versioned_parent or self.for_latest)

    def build(self, context: OperatorContext) -> RunningDerivedTable:
        """The running operator."""
        return RunningDerivedTable(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {
            "operator": "derived_table",
            **self.step.describe(),
            "store": None if self.store is None else self.store.describe(),
            "leaves_out_empty": self.leaves_out_empty,
        }

    def state_stores(self) -> Sequence[StoreSpec]:
        """The store's."""
        return () if self.store is None else (self.store.spec(),)


class RunningDerivedTable(WritingOperator):
    """The running operator."""

    calls_first: ClassVar[bool] = True

    def __init__(self, spec: DerivedTable, context: OperatorContext) -> None:
        super().__init__(spec.store, context, needs_prior=spec.needs_prior)
        self._spec = spec

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The changes of this table."""
        (batch,) = inputs
        metrics = self._context.metrics
        changes = replace(batch, value=self._step(batch, batch.value), prior=None)
        if self._writer is None and self._spec.needs_prior and batch.prior is not None:
            changes = replace(changes, prior=self._step(batch, batch.prior))
        metrics.records_in += len(batch)  # nothing is done before the functions have not failed
        if isinstance(self._writer, VersionedTableWriter) and self._spec.leaves_out_empty:
            changes = self._put_versions(self._writer, changes, uptake)
        elif self._writer is not None:
            changes = self._put(self._writer, changes, uptake).changes
        forwarded = without_empty(changes) if self._spec.leaves_out_empty else changes
        metrics.account("filtered", len(changes) - len(forwarded))
        metrics.account("forwarded" if self._writer is None else "stored", len(forwarded))
        metrics.records_out += len(forwarded)
        return forwarded

    def _put_versions(self, writer: VersionedTableWriter, changes: Batch, uptake: Uptake) -> Batch:
        """Puts changes, but no deletions of what is not there, which would be versions of their own.

        Whether something is there depends on all changes before, so a deletion is put, or not, by itself.
        """
        done, put = 0, [self._put(writer, changes.slice(0, 0), uptake).changes]
        for row in [*np.flatnonzero(~valid_of(changes.value)).tolist(), len(changes)]:
            some, deletion = changes.slice(done, row), changes.slice(row, min(row + 1, len(changes)))
            put.append(self._put(writer, some, uptake).changes)
            if len(deletion) and writer.have_values(deletion).all():
                put.append(self._put(writer, deletion, uptake).changes)
            else:
                self._context.metrics.account("filtered", len(deletion))
            done = row + 1
        return concat_changes(put)

    def _step(self, batch: Batch, values: pa.Array) -> pa.Array:
        return self._spec.step.apply(columns_of(batch.keys, values), Asking(self._context.node, batch.sequence))


@dataclass(frozen=True, slots=True)
class ToStream(StorelessSpec):
    """A table's changes as a stream: of each the key and the new value, tombstones included (``KTable.toStream``)."""

    def build(self, context: OperatorContext) -> Stateless:
        """The running operator."""
        return Stateless(as_stream, context)

    def describe(self) -> Mapping[str, object]:
        """Kind alone."""
        return {"operator": "to_stream"}
