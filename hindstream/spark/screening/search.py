"""What a look through the records of one partition gives, wherever they are read from; runs in a worker.

Rows that may fail by themselves are found by a filter. For uniqueness each row becomes a 64-bit hash of its values;
rows in different partitions can agree only if ``partition`` is not among the columns. Rows that are to differ in a
number, a key and perhaps more do so in every partition where they ascend by these two.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from hindstream.spark.expectations.flat_tables import PARTITION, flat_columns
from hindstream.spark.screening.ascent import is_text, is_whole_number, keys_of_ascending_rows, numbers_that_ascend
from statelib.columns.counting import repeated_numbers
from statelib.columns.row_hash import hash_rows
from statelib.errors.kinds import CorruptedDataError, InputError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    import pyarrow.compute as pc
    from numpy.typing import NDArray

    from hindstream.spark.expectations.flat_tables import Column
    from hindstream.spark.screening.screen import Condition, Screen, Unique
    from statelib.storage import Storage

MOST_SUSPECTS = 10_000
"""Where a screen lets more rows through than this, something is wrong with the data or the checks at large."""


class Kind(Enum):
    """Of what a scan gives: a value, and the number of the check that it is about."""

    ROWS = "flat rows that may fail"
    KEYS = "hashes of the keys of a partition whose rows ascend"
    UNDECIDED = "whether rows agree: it takes hashes to tell"
    HASHES = "hashes that may be in other partitions too"
    REPEATED = "hashes that are there twice"
    ERROR = "what is wrong with a file; trying again would not mend it, so to Spark it is a result like others"


Found = tuple[Kind, int, Any]


class Part(Protocol):
    """Records of one partition that are read together: a file, or what a slice has of them."""

    @property
    def partition(self) -> int:
        """Of the topic."""
        ...

    @property
    def rows(self) -> int:
        """How many records there are."""
        ...


PartT = TypeVar("PartT", bound=Part)


@dataclass(frozen=True, slots=True)
class Search(ABC, Generic[PartT]):
    """Looks through the records of one partition of a topic.

    Attributes:
        warehouse: Where they are.
        topic: Whose records they are.
        schema: Of the topic.
        screen: What to look for.
        buckets: Over how many tasks the hashes of a check are spread.
        repeated: By the number of a uniqueness check, the hashes to fetch rows of; without them hashes are made.
        undecided: The numbers of the uniqueness checks that the first look has left so: makes hashes for these alone.
    """

    warehouse: Storage
    topic: str
    schema: pa.Schema
    screen: Screen
    buckets: int = 1
    repeated: Mapping[int, NDArray[np.uint64]] = field(default_factory=dict)
    undecided: frozenset[int] = frozenset()

    def __call__(self, parts: Sequence[PartT]) -> Iterator[tuple[int, Found]]:
        """Gives what it finds, with the number of the task that is to have it."""
        try:
            if not self.undecided:
                yield from self._rows(parts)
            if not self.repeated:
                yield from self._differences(parts)
        except (CorruptedDataError, InputError) as error:
            yield 0, (Kind.ERROR, 0, error)

    @abstractmethod
    def _rows(self, parts: Iterable[PartT]) -> Iterator[tuple[int, Found]]:
        """The rows that may fail by themselves, or have a repeated hash."""

    @abstractmethod
    def _tables(self, parts: Iterable[PartT], columns: Sequence[Column]) -> Iterator[pa.Table]:
        """Flat columns of all rows."""

    @abstractmethod
    def _offsets_differ(self, parts: Sequence[PartT]) -> bool:
        """Whether it is known without a look that no offset of the partition is there twice."""

    def _needed(self, conditions: Iterable[Condition]) -> list[Column]:
        """What `_suspect` looks at."""
        named = [condition.columns for condition in conditions]
        named += [self.screen.unique[number].columns for number in self.repeated]
        return self._named({name for names in named for name in names})

    def _suspect(self, table: pa.Table, conditions: Sequence[Condition]) -> NDArray[np.bool_]:
        suspect = np.zeros(len(table), np.bool_)
        if conditions:
            suspect[_where(table, reduce(operator.or_, (condition.expression for condition in conditions)))] = True
        for number, repeated in self.repeated.items():
            counted, hashes = _hashed(table, self.screen.unique[number])
            suspect[counted[np.isin(hashes, repeated)]] = True
        return suspect

    def _differences(self, parts: Sequence[PartT]) -> Iterator[tuple[int, Found]]:
        """What it takes to find rows that agree."""
        for number, unique in enumerate(self.screen.unique):
            if self.undecided:
                if number in self.undecided:
                    yield from self._hashes(parts, number)
            elif unique.is_within_partition:
                columns = self._named(unique.columns)
                numbers = [column for column in columns if is_whole_number(column) and column != PARTITION]
                if any(column.name == "offset" for column in numbers) and self._offsets_differ(parts):
                    continue
                if not numbers_that_ascend(self._tables(parts, numbers) if numbers else ()):
                    hashes = (_hashed(table, unique)[1] for table in self._tables(parts, columns))
                    yield 0, (Kind.REPEATED, number, repeated_hashes(hashes))
            elif (keys := self._keys_if_ascending(parts, unique)) is not None:
                yield number * self.buckets, (Kind.KEYS, number, keys)
            else:
                yield from self._hashes(parts, number)

    def _keys_if_ascending(self, parts: Sequence[PartT], unique: Unique) -> NDArray[np.uint64] | None:
        """See `keys_of_ascending_rows`; whichever columns these are."""
        columns = self._named(unique.columns)
        numbers = [column for column in columns if is_whole_number(column)]
        for number, key in product(numbers, (column for column in columns if is_text(column))):
            tables = self._tables(parts, self._named({number.name, key.name}))
            keys = keys_of_ascending_rows(tables, number.name, key.name)
            if keys is not None:
                return keys
        return None

    def _hashes(self, parts: Sequence[PartT], number: int) -> Iterator[tuple[int, Found]]:
        """Those of a uniqueness check, by bucket."""
        unique = self.screen.unique[number]
        for table in self._tables(parts, self._named(unique.columns)):
            _, hashes = _hashed(table, unique)
            if self.buckets == 1:
                yield number, (Kind.HASHES, number, hashes)
                continue
            bucket = (hashes % np.uint64(self.buckets)).astype(np.intp)
            for n in range(self.buckets):
                yield number * self.buckets + n, (Kind.HASHES, number, hashes[bucket == n])

    @property
    def _columns(self) -> Sequence[Column]:
        return flat_columns(self.schema)

    def _named(self, names: Container[str]) -> list[Column]:
        return [column for column in self._columns if column.name in names]


def _hashed(table: pa.Table, unique: Unique) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """The rows that count, and their hashes."""
    counted = _where(table, unique.counted())
    if len(counted) < len(table):
        table = table.take(counted)
    return counted, hash_rows([table.column(name).combine_chunks() for name in unique.columns])


def _where(table: pa.Table, condition: pc.Expression | None) -> NDArray[np.intp]:
    """Where the condition is true; None: everywhere."""
    if condition is None:
        return np.arange(len(table))
    numbered = table.append_column("", pa.array(np.arange(len(table))))
    rows: NDArray[np.intp] = numbered.filter(condition).column("").to_numpy()
    return rows


def repeated_hashes(arrays: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Those that are there more than once, each once, in order."""
    return np.sort(repeated_numbers(np.concatenate(list(arrays)).view(np.int64)).view(np.uint64))
