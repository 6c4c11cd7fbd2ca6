"""What a comparison has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from statelib.comparison.fields import SchemaDifference
    from statelib.comparison.matches import Way
    from statelib.comparison.number_changes import NumberChanges
    from statelib.comparison.times import TimeCounts


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field that changed in some rows.

    Attributes:
        path: See `statelib.comparison.fields.Field`; ``key`` where records are compared in order.
        changed: In how many rows.
        numbers: By how much, of numbers; of the timestamp in milliseconds. None: no row has a number on both sides.
    """

    path: str
    changed: int
    numbers: NumberChanges | None


@dataclass(frozen=True, slots=True)
class Example:
    """A row that differs.

    Attributes:
        key: Its key; of windowed keys with the window. Where records are compared in order, that of A.
        a: Value, timestamp and headers in A, where it is there, and its key if that changed; None: it is not there.
        b: The same in B.
        fields: Those that changed.
    """

    key: Any
    a: dict[str, Any] | None
    b: dict[str, Any] | None
    fields: tuple[str, ...]


class DifferingRowsTaker(Protocol):
    """Is given all rows that differ while they are counted, in no order that means anything.

    Tables have the columns of `statelib.comparison.sides.Stretch`, and ``place``.
    """

    def take(self, a: pa.Table | None, b: pa.Table | None) -> None:
        """Rows of A and those of B that they have become, row by row; None: only the other side has them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences of two sides.

    Attributes:
        way: How they were compared; see `statelib.comparison.compare.compare`.
        rows_a: How many rows of A were read: those that B does not share.
        rows_b: The same of B.
        shared: How many rows both share, so that nobody need compare them.
        equal: Keys or records that are equal.
        only_a: That only A has.
        only_b: That only B has.
        changed: That both have, with other content.
        schema: Fields that one side lacks, or that have other types.
        fields: Those that changed, most often changed first.
        examples: Of ``changed``, ``only_a`` and ``only_b`` the first ones by key; of ``order`` by partition and offset.
        times: When what differs happened.
        common_key: What the keys of all rows that differ have in common: by path (``key``, ``key.origin``) the value.
        is_compared: False: keys of such types cannot be compared.
        first: The first row by time that differs; None: there is none.
        first_ms: Its time: see `statelib.comparison.times.times_of`; None: it has none.
        behind: How many of the rows that differ are of a time that was asked for or later; None: none was.
    """

    way: Way
    rows_a: int
    rows_b: int
    shared: int
    equal: int
    only_a: int
    only_b: int
    changed: int
    schema: tuple[SchemaDifference, ...]
    fields: tuple[FieldDifference, ...]
    examples: dict[str, tuple[Example, ...]]
    times: TimeCounts | None
    common_key: dict[str, Any] = field(default_factory=dict)
    is_compared: bool = True
    first: Example | None = None
    first_ms: int | None = None
    behind: int | None = None

    @property
    def compared(self) -> int:
        """How many keys or records were compared."""
        return self.equal + self.only_a + self.only_b + self.changed

    @property
    def is_empty(self) -> bool:
        """Whether both sides are the same."""
        return not (self.only_a or self.only_b or self.changed or self.schema) and self.is_compared
