"""Serdes as options of nodes, which Kafka's DSL wants wherever it writes bytes.

Between nodes records are Arrow columns here, and nothing is converted: a serde is looked at, and then changes nothing.
A key's bytes decide its partition, and the order of keys at one time, so a key serde that writes other bytes than the
keys' type has is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from statelib.calls import KafkasNames
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import place_of_call
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from statelib.serdes import Serde


class WithSerdes(KafkasNames):
    """Base of options that take serdes: see the module's docstring."""

    __slots__ = ()

    @classmethod
    def with_(cls, key_serde: Serde | None = None, value_serde: Serde | None = None) -> Self:
        """Without a name; the serdes change nothing.

        Raises:
            ConfigurationError: The key serde writes other bytes than the keys' type has.
        """
        del value_serde
        check_key_serde(key_serde)
        return cls()

    def with_key_serde(self, serde: Serde) -> Self:
        """The same: nothing is converted between nodes.

        Raises:
            ConfigurationError: It writes other bytes than the keys' type has.
        """
        check_key_serde(serde)
        return self

    def with_value_serde(self, serde: Serde) -> Self:
        """The same: nothing is converted between nodes."""
        del serde
        return self


class WithOtherSerde(WithSerdes):
    """The same for joins, whose other side has values of its own."""

    __slots__ = ()

    @classmethod
    def with_(
        cls,
        key_serde: Serde | None = None,
        value_serde: Serde | None = None,
        other_value_serde: Serde | None = None,
    ) -> Self:
        """Without a name; the serdes change nothing.

        Raises:
            ConfigurationError: The key serde writes other bytes than the keys' type has.
        """
        del value_serde, other_value_serde
        check_key_serde(key_serde)
        return cls()

    def with_other_value_serde(self, serde: Serde) -> Self:
        """The same: nothing is converted between nodes."""
        del serde
        return self


class OfSerdes(WithSerdes):
    """The same, with Kafka's ``keySerde`` and ``valueSerde``."""

    __slots__ = ()

    @classmethod
    def key_serde(cls, serde: Serde) -> Self:
        """Without a name. Raises as `with_key_serde` does."""
        check_key_serde(serde)
        return cls()

    @classmethod
    def value_serde(cls, serde: Serde) -> Self:
        """Without a name."""
        del serde
        return cls()


def check_key_serde(key_serde: Serde | None) -> None:
    """Raises where it writes other bytes than the keys' type has."""
    if key_serde is None or key_serde.describe() == serde_for(key_serde.arrow_type).describe():
        return
    raise ConfigurationError(
        f"keys of type {key_serde.arrow_type} are placed and ordered by the bytes of their type between nodes, not by "
        f"those of {type(key_serde).__name__}",
        next_step="leave it out; Consumed.with_() says what a source's topic holds, and KafkaTopic in what a sink is "
        "published",
        **place_of_call(),
    )
