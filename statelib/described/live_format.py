"""How a live application writes the keys and values of a store, if that differs from the store's own bytes.

A store holds keys and values in the bytes of `statelib.serdes.serde_for` their type. Of an aggregation it holds the
states, such as the sum and the count of a mean. A Kafka Streams application has its own serdes and its own aggregates.
`StoreFormat` declares them; `LiveKeys` and `LiveValues` translate.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.windowed_type import WindowedType
from statelib.described.description import as_stored
from statelib.described.stored_values import described_serde, stored_type
from statelib.errors.kinds import ConfigurationError, HindstreamError, InputError
from statelib.serdes import serde_for
from statelib.stores.byte_columns import joined, packed, split_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from statelib.described.description import Described
    from statelib.serdes import Serde

    Shape = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class StoreFormat:
    """How a live application writes a store's keys and values in its changelog, for both directions.

    ::

        StoreFormat()  # strings, numbers, booleans, bytes: as Kafka's own serdes
        StoreFormat(value=JsonSerde(pa.struct([("n", pa.int64()), ("sum", pa.int64())])))
        StoreFormat(value=JsonSerde(average), to_live=sum_and_count, from_live=state_of)  # two functions of modules

    Immutable, and picklable if its functions are.

    Attributes:
        key: The application's serde of keys; None: Kafka's own for their type. For windowed keys: of the key without
            its window.
        value: The application's serde of values; None: Kafka's own for their type.
        to_live: A function from an Arrow array of what the store holds to an array of the application's values, for the
            serde ``value``. For an aggregation the store holds states: a struct with one column per function, under the
            function's name (``NAME.sum`` and ``NAME.count`` for a mean); for a single function only its column. For
            other stores it holds values. None: results are written, as readers of the store see them.
        from_live: The inverse function. None: the application's values are results. This is refused if the states
            cannot be told from results.
        right_value: The serde of the right side's records, for stores that hold both sides of a join; None: Kafka's
            own.
        placed_by_key: Whether the application's topics have each key in the partition that Kafka's default partitioner
            chooses. If so, this is checked.
    """

    key: Serde | None = None
    value: Serde | None = None
    to_live: Shape | None = None
    from_live: Shape | None = None
    right_value: Serde | None = None
    placed_by_key: bool = True


class LiveKeys:
    """Keys of a store, from its bytes to the application's and back.

    Of windowed keys the times behind the key are the same in both.

    Args:
        described: The store.
        declared: The application's serde; None: Kafka's own.
        field: Of the store's schema: which keys.

    Raises:
        ConfigurationError: Kafka has no serde for their type, and none is declared.
    """

    def __init__(self, described: Described, declared: Serde | None, field: str = "key") -> None:
        self._of, self._type = f"the {field}s of store {described.name}", described.type(field)
        self._tail_bytes = 0
        self._placed_whole = described.is_repartitioned
        while isinstance(self._type, WindowedType):
            self._tail_bytes += 16 if self._type.windows.kind == "session" else 8
            self._type = self._type.key_type
        self._stored = described.settings.get("key_serde") if field == "key" else None
        self._name = described.name
        self._live = _live_serde(described, self._stored, self._type, declared, f"{field}s", "key")

    def written(self, stored: pa.Array) -> pa.Array:
        """The application's bytes.

        Raises:
            ConfigurationError: The store has them in bytes of a serde of the job's own, and another one is declared.
        """
        if self._live is None:
            return stored
        keys, times = self._split(stored)
        with _of_store(self._name):
            return self._joined(_bytes(self._live, self._serde().deserialize(keys), self._name, "keys"), times)

    def placed_by(self, written: pa.Array) -> pa.Array:
        """What of the application's bytes decides in which partition a key is.

        That is the key without its windows, as its topic was partitioned before there were any; but what Kafka Streams
        has repartitioned under windowed keys lies by all of their bytes.
        """
        return written if self._placed_whole else self.without_windows(written)

    def without_windows(self, written: pa.Array) -> pa.Array:
        """The application's bytes of the keys alone."""
        return self._split(written)[0]

    def read(self, live: pa.Array) -> pa.Array:
        """The store's bytes.

        Raises:
            InputError: A key is not what the application's serde writes.
        """
        if self._live is None:
            return live
        plain, times = self._split(live)
        with _of_store(self._name):
            keys = _as_type(self._live.deserialize(plain), self._type, self._name, "keys")
            return self._joined(self._serde().serialize(keys).cast(pa.binary()), times)

    def _split(self, keys: pa.Array) -> tuple[pa.Array, NDArray[Any]]:
        """The keys without the times of their windows, and these."""
        if not self._tail_bytes:
            return keys, np.empty(0, np.uint8)
        plain, times = split_tail(keys, np.dtype((np.uint8, (self._tail_bytes,))), self._name)
        return plain.cast(pa.binary()), times

    def _joined(self, keys: pa.Array, times: NDArray[Any]) -> pa.Array:
        return joined(keys, packed(times)).cast(pa.binary()) if self._tail_bytes else keys

    def _serde(self) -> Serde:
        return described_serde(self._stored, self._type, of=self._of)


class LiveValues:
    """Values of a store, from what it has to the application's bytes and back.

    *States* are what a store has, as an Arrow array: see `StoreFormat.to_live`.

    Args:
        described: The store.
        declared: The application's format.
        field: Of the store's schema: which values.
        aggregates: Whether the store has the states of an aggregation, if there is one; else results of it.
        named: What says in `StoreFormat` how they are written.

    Raises:
        ConfigurationError: Kafka has no serde for their type, and none is declared.
    """

    def __init__(
        self,
        described: Described,
        declared: StoreFormat,
        field: str = "value",
        *,
        aggregates: bool = True,
        named: str = "value",
    ) -> None:
        settings: Mapping[str, Any] = described.settings if aggregates else {}
        self._name, self._stored = described.name, settings.get("value_serde")
        self._result_type = described.type(field)
        self.type = stored_type(described.schema) if aggregates else self._result_type
        """Of states."""
        self._to_live, self._from_live = declared.to_live, declared.from_live
        self._results, self._aggregator = described.results_of if aggregates else as_stored, settings.get("aggregator")
        shaped = self._to_live is not None or self._from_live is not None
        if shaped and declared.value is None:
            raise ConfigurationError(
                "to_live or from_live is given, but no serde for the values that it converts",
                store=self._name,
                next_step="name the application's serde: StoreFormat(value=..., to_live=...)",
            )
        self._live = _live_serde(described, self._stored, self._result_type, declared.value, "values", named)
        self._same = self._aggregator is None and not shaped and self._live is None

    def written(self, stored: pa.Array) -> pa.Array:
        """The application's bytes of the bytes of states; null where the value is null as the application has it."""
        return stored if self._same else self.of_states(self._serde().deserialize(stored))

    def of_states(self, states: pa.Array) -> pa.Array:
        """The application's bytes of states; null stays null."""
        with _of_store(self._name):
            live = self._results(states) if self._to_live is None else self._to_live(states)
            if self._to_live is not None and live.null_count > states.null_count:
                raise InputError("to_live returned null for a value that is not null: this would delete the key")
            return _bytes(self._live or serde_for(self._result_type), live, self._name, "values")

    def read(self, live: pa.Array) -> pa.Array:
        """The bytes of states, as `statelib.operators.changelog` logs them.

        Raises:
            InputError: A value is not what the application's serde writes.
            ConfigurationError: Results do not tell the states, and no function does.
        """
        return live if self._same else self._serde().serialize(self.states_of(live)).cast(pa.binary())

    def states_of(self, live: pa.Array) -> pa.Array:
        """States, of the application's bytes; errors as of `read`."""
        with _of_store(self._name):
            values = (self._live or serde_for(self._result_type)).deserialize(live)
            values = self._states(values) if self._from_live is None else self._from_live(values)
            return _as_type(values, self.type, self._name, "values")

    def _states(self, results: pa.Array) -> pa.Array:
        if self._aggregator is not None and not _same_columns(self._result_type, self.type):
            raise ConfigurationError(
                f"the aggregation's states ({self.type}) cannot be computed from its results ({self._result_type})",
                next_step="compute the states from the application's values: StoreFormat(value=..., from_live=...)",
            )
        return results

    def _serde(self) -> Serde:
        if self._stored is None:
            return serde_for(self.type)
        return described_serde(self._stored, self.type, of=f"the values of store {self._name}")


def is_plain(arrow_type: pa.DataType) -> bool:
    """Whether values of the type have a serde of Kafka's own, which writes the bytes of `serde_for`."""
    if pa.types.is_dictionary(arrow_type):
        return is_plain(arrow_type.value_type)
    is_text = pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)
    is_bytes = pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type)
    is_integer = pa.types.is_int16(arrow_type) or pa.types.is_int32(arrow_type) or pa.types.is_int64(arrow_type)
    is_real = pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type)
    return any((is_text, is_bytes, is_integer, is_real, pa.types.is_boolean(arrow_type)))


def _live_serde(
    described: Described,
    stored: Mapping[str, Any] | None,
    of: pa.DataType,
    declared: Serde | None,
    what: str,
    name: str,
) -> Serde | None:
    """The application's serde; None: its bytes are those in the store."""
    if declared is not None:
        return None if stored is not None and dict(declared.describe()) == dict(stored) else declared
    is_own = stored is not None and stored != serde_for(of).describe()  # a processor's store in the job's own serde
    if is_own or is_plain(of):
        return None
    raise ConfigurationError(
        f"Kafka has no serde of its own for the {what}, whose type is {of}",
        store=described.name,
        next_step=f"name the application's serde, such as StoreFormat({name}=JsonSerde(...))",
    )


def _same_columns(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return {field.name for field in one} == {field.name for field in other}
    return bool(one.equals(other))


def _bytes(serde: Serde, values: pa.Array, store: str, what: str) -> pa.Array:
    """The bytes of values; null stays null.

    Raises:
        InputError: The serde has none for a value that is not null.
    """
    written = serde.serialize(_as_type(values, serde.arrow_type, store, what)).cast(pa.binary())
    lost = ~valid_of(written) & valid_of(values)
    if lost.any():
        raise InputError(f"the serde of {what} wrote null for {values[int(lost.argmax())]}: this would delete the key")
    return written


def _as_type(values: pa.Array, wanted: pa.DataType, store: str, what: str) -> pa.Array:
    if values.type == wanted:
        return values
    try:
        if pa.types.is_struct(wanted) and pa.types.is_struct(values.type):
            mask = values.is_null() if values.null_count else None
            parts = [_as_type(values.field(field.name), field.type, store, what) for field in wanted]
            return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=mask)
        return values.cast(wanted)
    except (pa.ArrowException, KeyError) as error:
        raise ConfigurationError(
            f"the {what} have type {values.type}, but {wanted} is needed: {error}",
            store=store,
            next_step="give StoreFormat a serde of this type, or functions that convert",
        ) from error


@contextmanager
def _of_store(name: str) -> Iterator[None]:
    """Names the store in errors."""
    try:
        yield
    except HindstreamError as error:
        error.place.setdefault("store", name)
        raise
