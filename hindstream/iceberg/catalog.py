"""Tables of the catalogs that pyiceberg is configured for: opening and making them, and what their errors mean."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyiceberg import exceptions
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from hindstream.iceberg.position import POSITION, TablePosition
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, HindstreamError, RetryableError
from statelib.storage import reason_without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyiceberg.table import Table

    from statelib.job.iceberg_table import IcebergTable

_DEFECTS = (AssertionError, AttributeError, LookupError, NameError)
"""What no table and no catalog is to blame for."""

_AGAIN = (OSError, exceptions.ServerError, exceptions.ServiceUnavailableError, exceptions.TooManyRequestsError)

_PROPERTIES = {"commit.manifest-merge.enabled": "true", "write.metadata.delete-after-commit.enabled": "true"}
"""Of tables that Hindstream makes: so that each publication costs no more than the one before."""


@contextmanager
def errors_told(table: IcebergTable) -> Iterator[None]:
    """Turns what pyiceberg raises, or a catalog's client under it, into an error that names the table."""
    configured = Config().get_catalog_config(table.catalog) or {}
    secrets = {name: value for name, value in configured.items() if isinstance(value, str)}
    try:
        yield
    except HindstreamError as error:
        raise error.placed(table=table.name) from error
    except exceptions.CommitStateUnknownException as error:
        what = f"the catalog did not say whether the table was changed: {reason_without_secrets(error, secrets)}"
        raise RetryableError(what, table=table.name, next_step="publish again: nothing is published twice") from None
    except _DEFECTS:
        raise
    except Exception as error:  # noqa: BLE001 - clients of catalogs raise what they like
        kind = RetryableError if isinstance(error, _AGAIN) else ConfigurationError
        what = f"the Iceberg table cannot be published to: {reason_without_secrets(error, secrets)}"
        next_step = "check the catalog's settings: .pyiceberg.yaml and PYICEBERG_CATALOG__... in the environment"
        raise kind(what, table=table.name, next_step=next_step) from None  # its text may hold credentials


def open_table(table: IcebergTable) -> Table | None:
    """The newest version of a table; None: there is none."""
    try:
        return load_catalog(table.catalog).load_table(table.identifier)
    except exceptions.NoSuchTableError:
        return None


def make_table(table: IcebergTable, columns: pa.Schema) -> Table:
    """Makes a table without a row.

    Raises:
        ConfigurationError: There is no such namespace.
    """
    catalog = load_catalog(table.catalog)
    try:
        with catalog.create_table_transaction(table.identifier, columns, properties=_PROPERTIES) as transaction:
            with transaction.update_spec() as spec:
                spec.add_identity("partition")
            step("iceberg.before-create")
    except exceptions.NoSuchNamespaceError:
        namespace = ".".join(table.identifier[:-1])
        next_step = f"make it: pyiceberg --catalog {table.catalog} create namespace {namespace}"
        raise ConfigurationError(f"the catalog has no namespace {namespace}", next_step=next_step) from None
    except (exceptions.TableAlreadyExistsError, exceptions.CommitFailedException):
        pass  # somebody else was quicker
    step("iceberg.created")
    return catalog.load_table(table.identifier)


def position_of(table: Table, name: str) -> TablePosition | None:
    """How far a sink has been published to a table, as of its newest snapshot; None: nobody has begun.

    A snapshot of somebody else, such as one that compacts files, is as far as the one before. Where others have expired
    that one, the table's property tells.

    Raises:
        ConfigurationError: A newer Hindstream has published.
        CorruptedDataError: It cannot be read.
    """
    snapshot = table.current_snapshot()
    while snapshot is not None:
        told = None if snapshot.summary is None else snapshot.summary.additional_properties.get(POSITION)
        if told is not None:
            return TablePosition.decode(told, table=name)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot_by_id(parent)
    told = table.properties.get(POSITION) if table.current_snapshot() is not None else None
    return None if told is None else TablePosition.decode(told, table=name)
