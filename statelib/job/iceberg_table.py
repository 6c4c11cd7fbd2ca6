"""A table of an Iceberg catalog that gets the records of a sink."""

from __future__ import annotations

from dataclasses import dataclass

from statelib.calls.names import check_given_name
from statelib.errors.kinds import ConfigurationError

_NAMES = 3
"""Catalog, namespace and table, at least: a namespace may have several levels."""


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table of an Iceberg catalog.

    Attributes:
        name: ``CATALOG.NAMESPACE.TABLE``. pyiceberg's configuration says what the catalog is: ``.pyiceberg.yaml``, or
            ``PYICEBERG_CATALOG__...`` in the environment.
        archive: The sink whose records it gets; None: the one that is called as the table is.

    Raises:
        ConfigurationError: The name has fewer parts, or an empty one; or Kafka does not allow the sink's name.
    """

    name: str
    archive: str | None = None

    def __post_init__(self) -> None:
        """Checks the names."""
        parts = self.name.split(".")
        if len(parts) < _NAMES or not all(parts):
            step = "name it CATALOG.NAMESPACE.TABLE, such as prod.gold.delays"
            raise ConfigurationError("this is no Iceberg table of a catalog", given=self.name, next_step=step)
        check_given_name(self.archive_name, "a topic")

    @property
    def catalog(self) -> str:
        """The name of the catalog in pyiceberg's configuration."""
        return self.name.partition(".")[0]

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace and table."""
        return tuple(self.name.split(".")[1:])

    @property
    def archive_name(self) -> str:
        """The name of the sink."""
        return self.identifier[-1] if self.archive is None else self.archive
