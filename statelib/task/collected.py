"""What a node forwards one by one, as a batch."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.operators.processors.forwarded import TO_ALL
from statelib.records.key_column import KeyColumn, concat_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.operators.processors.definition import FixedKeyRecord
    from statelib.operators.processors.forwarded import Forwarded
    from statelib.records.batch import Batch


@dataclass(slots=True)
class Records:
    """Records of a custom processor.

    Attributes:
        forwarded: They, as columns.
        functions: The user's that forward them, for errors.
        numbers: The number of each among all results that leave a turn.
    """

    forwarded: Forwarded
    functions: Sequence[object]
    numbers: list[int] = field(default_factory=list)

    def add(self, record: FixedKeyRecord, sequence: int) -> None:
        """One more, with the sequence of its cause."""
        self.forwarded.add(record, sequence, TO_ALL)

    def batch(self) -> Batch:
        """All.

        Raises:
            ConfigurationError: See `Forwarded.batch`.
        """
        return self.forwarded.batch(self.functions)


@dataclass(slots=True)
class Parts:
    """Batches of any other operator.

    Attributes:
        nothing: Its empty batch.
        parts: They.
        numbers: See `Records`.
    """

    nothing: Batch
    parts: list[Batch] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def batch(self) -> Batch:
        """All in one."""
        parts = self.parts or [self.nothing]
        if len(parts) == 1:
            return parts[0]
        columns = {of.name: _column([(len(part), getattr(part, of.name)) for part in parts]) for of in fields(parts[0])}
        return type(parts[0])(**columns)


def _column(parts: Sequence[tuple[int, Any]]) -> Any:
    """A column of the parts: what is missing in some is null there, a flag true; codes are then missing in all."""
    known = [values for _, values in parts if values is not None]
    if not known:
        return None
    if isinstance(known[0], KeyColumn):
        return concat_keys(known)
    if isinstance(known[0], np.ndarray):
        if len(known) == len(parts):
            return np.concatenate(known)
        if known[0].dtype != np.bool_:
            return None
        return np.concatenate([np.ones(count, np.bool_) if of is None else of for count, of in parts])
    return pa.concat_arrays([pa.nulls(count, known[0].type) if of is None else of for count, of in parts])
