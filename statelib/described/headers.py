"""Changelogs of stores with headers: in Kafka's records the headers are the record's, and its value is the value alone.

Stores have both together (`statelib.serdes.with_headers`), and so have our own changelogs. Here one is made of the
other, around what exports and imports stores of the same kind without headers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.described.live_format import LiveValues
from statelib.serdes.with_headers import HEADERS_TYPE, joined, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from statelib.described.description import Described
    from statelib.described.exporting import Exporter, Records, Share
    from statelib.described.importing import Importer
    from statelib.described.live_format import StoreFormat
    from statelib.stores.byte_columns import Column


@dataclass(frozen=True, slots=True)
class _Facts:
    """See `StoreFacts`."""

    name: str
    kind: str
    node: str
    families: tuple[str, ...]
    sub_topology: int
    settings: dict[str, Any]


def has_headers(settings: Mapping[str, Any]) -> bool:
    """Whether a store of these settings keeps headers with its values."""
    return dict(settings.get("value_serde") or {}).get("serde") == "with-headers"


class HeadersExporter:
    """Of a store with headers.

    Args:
        exporter: Of stores of the kind.
        described: The store.
        form: How the application writes keys and values.
    """

    def __init__(
        self, exporter: Callable[[Described, StoreFormat], Exporter], described: Described, form: StoreFormat
    ) -> None:
        self._exporter = exporter(described, _keys_only(form))
        self._values = LiveValues(_of_values(described), form)

    def records(self, share: Share) -> Iterator[Records]:
        """See `Exporter`."""
        for records in self._exporter.records(share):
            parts = [split(raw) for raw in records.values.to_pylist()]
            values = self._values.written(pa.array([value for value, _ in parts], pa.binary()))
            headers = pa.array([headers or None for _, headers in parts], HEADERS_TYPE)
            yield records._replace(values=values.cast(pa.binary()), headers=headers)


class HeadersImporter:
    """As `HeadersExporter`, the way back."""

    def __init__(
        self, importer: Callable[[Described, StoreFormat], Importer], described: Described, form: StoreFormat
    ) -> None:
        self._importer = importer(described, _keys_only(form))
        self._values = LiveValues(_of_values(described), form)
        self.clocks = self._importer.clocks

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        return self._importer.keys(raws)

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`."""
        plain = self._values.read(batch.column("value"))
        headers = batch.column("headers") if "headers" in batch.schema.names else pa.nulls(len(batch), HEADERS_TYPE)
        together = batch.set_column(batch.schema.get_field_index("value"), "value", joined(plain, headers))
        return self._importer.values(together)


def _keys_only(form: StoreFormat) -> StoreFormat:
    """Values pass as they are: with their headers."""
    return replace(form, value=None, to_live=None, from_live=None)


def _of_values(described: Described) -> Described:
    """The same store, with the values alone."""
    settings = {**described.settings, "value_serde": described.settings["value_serde"]["value"]}
    place = described.schema.get_field_index("value")
    schema = described.schema.set(place, pa.field("value", described.type("value").field("value").type))
    store = described.store
    alone = _Facts(store.name, store.kind, store.node, store.families, store.sub_topology, settings)
    return replace(described, store=alone, schema=schema)
