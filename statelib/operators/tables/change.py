"""What travels between the operators of tables: changes (Kafka's ``Change``).

A batch that a table forwards is a column of changes, one a record:

=============  =================  =====================================================================================
column         in Kafka           meaning
=============  =================  =====================================================================================
``value``      ``newValue``       what the key has from now on; null: nothing
``prior``      ``oldValue``       what it had before; null: nothing. No such column: nobody below needs it
``is_latest``  ``isLatest``       whether ``value`` is what the key has *now*. No such column: all are the latest
=============  =================  =====================================================================================

**Prior values** cost a look-up, so tables give them only where an operator asked for them when the topology was
described (``needs_prior``; Kafka: ``enableSendingOldValues``). The first of two updates of a key in one batch is the
prior of the second, whatever the batches are.

**Out-of-order updates** (KIP-914). A plain table is what arrived last, whatever its timestamp: all of its changes are
the latest. A versioned table takes a late update into its history without changing what holds now; such a change has
``is_latest`` false, and as its prior the latest value, which stays. A stream, a filter, a mapped value lets it pass.
What works on the latest values alone must not see it: table-table joins, foreign-key joins and aggregations of tables
call `only_latest` first. Behind a plain store everything is the latest again.

A join of two tables (`statelib.operators.joins.table_table.operator`) joins both values of each change of one side with
what the other side has now.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.records.batch import concat_in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.records.batch import Batch


def latest(changes: Batch) -> NDArray[np.bool_]:
    """bool, by change: whether it says what holds now."""
    return np.ones(len(changes), np.bool_) if changes.is_latest is None else changes.is_latest


def only_latest(changes: Batch) -> tuple[Batch, int]:
    """The changes that say what holds now, and how many out-of-order ones were left out (KIP-914)."""
    if changes.is_latest is None:
        return changes, 0
    latest = replace(changes.filter(changes.is_latest), is_latest=None)
    return latest, len(changes) - len(latest)


def as_stream(changes: Batch) -> Batch:
    """The changes as records of a stream: key, new value, timestamp, nothing else (Kafka's ``toStream``)."""
    return replace(changes, prior=None, is_latest=None)


def without_empty(changes: Batch) -> Batch:
    """The changes but those from nothing to nothing; all of them where the prior values are not known."""
    if changes.prior is None:
        return changes
    return changes.filter(valid_of(changes.value) | valid_of(changes.prior))


def concat_changes(batches: Sequence[Batch]) -> Batch:
    """The changes of one batch after the other; all say the same of what they replace and of what is the latest."""
    together, _ = concat_in_order(batches)
    priors = [batch.prior for batch in batches if batch.prior is not None]
    latest = [batch.is_latest for batch in batches if batch.is_latest is not None]
    return replace(
        together,
        prior=pa.concat_arrays(priors) if priors else None,
        is_latest=np.concatenate(latest) if latest else None,
    )


def merged_changes(batches: Sequence[Batch]) -> Batch:
    """The changes of several batches, all of them the latest, by sequence, ties in the order of ``batches``."""
    merged, _ = concat_in_order(batches)
    order = np.argsort(np.concatenate([batch.sequence for batch in batches]), kind="stable")

    def together(columns: list[pa.Array | None]) -> pa.Array | None:
        known = [column for column in columns if column is not None]
        if not known:
            return None
        filled = [
            pa.nulls(len(batch), known[0].type) if column is None else column
            for batch, column in zip(batches, columns, strict=True)
        ]
        return pa.concat_arrays(filled).take(pa.array(order))

    prior = together([batch.prior for batch in batches])
    return replace(merged, prior=prior, headers=together([batch.headers for batch in batches]), is_latest=None)
