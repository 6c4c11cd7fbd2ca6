"""What a store is, apart from what it holds: the part of a topology that outlives a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

StoreKind = Literal[
    "key-value",
    "versioned",
    "window",
    "session",
    "deduplication",
    "suppression-buffer",
    "join-buffer",
    "join-window",
    "held-records",
    "subscriptions",
    "foreign-key-answers",
    "punctuation",
]
"""Which module of `statelib.stores` reads it."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """One store of a topology.

    Attributes:
        name: The store's, by which it is known from one topology to the next.
        kind: See `StoreKind`.
        families: Its backend families.
        settings: Plain data (JSON): what decides which entries it has and what they mean, such as retention and
            aggregation.
    """

    name: str
    kind: StoreKind
    families: tuple[str, ...]
    settings: Mapping[str, object] = field(default_factory=dict)


def families_of(stores: Iterable[StoreSpec]) -> tuple[str, ...]:
    """The backend families of some stores."""
    return tuple(family for store in stores for family in store.families)


class StoredFamilies(Protocol):
    """A `StoreSpec`, or the description of one."""

    @property
    def kind(self) -> str:
        """See `StoreKind`."""

    @property
    def families(self) -> tuple[str, ...]:
        """Its backend families."""


def families_to_read(store: StoredFamilies) -> tuple[str, ...]:
    """The families that a store is read by; empty: all of the task's, since a buffer may refer to another store."""
    return () if store.kind == "suppression-buffer" else store.families


def settings_of(described: Mapping[str, object], *besides: str) -> dict[str, object]:
    """Of an operator's description, what is of its store: all but the operator's and the store's name."""
    return {name: value for name, value in described.items() if name not in {"operator", "store", *besides}}
