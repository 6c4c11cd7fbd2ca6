"""Queries of a versioned store (KIP-960 ``VersionedKeyQuery``, KIP-968 ``MultiVersionedKeyQuery``). Immutable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from statelib.state.epoch_time import Time


@dataclass(frozen=True, slots=True)
class VersionedKeyQuery:
    """One version of a key (KIP-960): ``VersionedKeyQuery.with_key("EUR").as_of(time)``; without a time the latest."""

    key: Any
    as_of_timestamp: Time | None = None

    @classmethod
    def with_key(cls, key: Any) -> VersionedKeyQuery:
        """The latest version of ``key``."""
        return cls(key)

    def as_of(self, timestamp: Time) -> VersionedKeyQuery:
        """The version that is valid at ``timestamp``."""
        return replace(self, as_of_timestamp=timestamp)


@dataclass(frozen=True, slots=True)
class MultiVersionedKeyQuery:
    """The versions of a key that are valid at any time in an inclusive range (KIP-968). By default latest first.

    ``MultiVersionedKeyQuery.with_key("EUR").from_time(first).to_time(last).with_ascending_timestamps()``
    """

    key: Any
    first: Time | None = None
    last: Time | None = None
    order: Literal["ascending", "descending"] = "descending"

    @classmethod
    def with_key(cls, key: Any) -> MultiVersionedKeyQuery:
        """All versions of ``key``."""
        return cls(key)

    def from_time(self, time: Time | None) -> MultiVersionedKeyQuery:
        """Excludes versions that ended at ``time`` or before; None: no lower bound."""
        return replace(self, first=time)

    def to_time(self, time: Time | None) -> MultiVersionedKeyQuery:
        """Excludes versions that began after ``time``; None: no upper bound."""
        return replace(self, last=time)

    def with_ascending_timestamps(self) -> MultiVersionedKeyQuery:
        """The earliest first."""
        return replace(self, order="ascending")

    def with_descending_timestamps(self) -> MultiVersionedKeyQuery:
        """The latest first."""
        return replace(self, order="descending")
