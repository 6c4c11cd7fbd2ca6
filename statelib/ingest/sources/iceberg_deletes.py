"""Deleted rows of Iceberg's data files: files of positions (Parquet), and deletion vectors (Puffin).

Source: the Iceberg specification, "Row-level deletes" and "Deletion vectors".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from numpy.typing import NDArray

_PATH, _POSITION = "file_path", "pos"


def files_with_deletes(new_input: Callable[[str], Any], delete_uri: str, delete_format: str) -> set[str]:
    """The addresses of the data files that a file of deletes says something of.

    Args:
        new_input: Gives what opens the file at an address, as pyiceberg's ``FileIO`` does.
        delete_uri: The file's address.
        delete_format: Its format.

    Raises:
        ConfigurationError: Its format is not known.
    """
    with new_input(delete_uri).open() as opened:
        if _is_puffin(delete_uri, delete_format):
            return set(_vectors(opened.read()))
        return set(pq.read_table(opened, columns=[_PATH])[_PATH].unique().to_pylist())


def deleted_positions(new_input: Callable[[str], Any], delete_uri: str, delete_format: str, uri: str) -> NDArray[Any]:
    """Which rows of the data file at ``uri`` are deleted, from 0: int64[n]. All else as `files_with_deletes`."""
    with new_input(delete_uri).open() as opened:
        if _is_puffin(delete_uri, delete_format):
            return _vectors(opened.read()).get(uri, np.empty(0, np.int64))
        found = pq.read_table(opened, columns=[_PATH, _POSITION], filters=[(_PATH, "==", uri)])
        return np.asarray(found[_POSITION], np.int64)


def _is_puffin(uri: str, format_: str) -> bool:
    if format_.upper() not in {"PARQUET", "PUFFIN"}:
        step = "compact the table (CALL system.rewrite_data_files), or load a query of Spark's (sql:SELECT ...)"
        raise ConfigurationError(f"deleted rows of the Iceberg table are in {format_}", file=uri, next_step=step)
    return format_.upper() == "PUFFIN"


def _vectors(content: bytes) -> dict[str, NDArray[Any]]:
    """By the address of a data file, its rows that are deleted."""
    from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file  # noqa: PLC0415 - an extra
    from pyiceberg.table.puffin import PuffinFile  # noqa: PLC0415 - an extra

    vectors = deletion_vectors_from_puffin_file(PuffinFile(content))
    return {one.referenced_data_file: np.asarray(one.to_vector(), np.int64) for one in vectors}
