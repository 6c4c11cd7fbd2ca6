"""Clients of object stores: one for all tasks of a process, as each has to shake hands anew."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from obstore.store import from_url

from statelib.settings.storage_options import obstore_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ObjectStore

_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")
"""Prefixes of the variables where obstore looks for what the options lack."""

_MOST_CLIENTS = 16


def client(root_uri: str, options: Mapping[str, str]) -> ObjectStore:
    """A client of the store at ``root_uri``: the same again while the options and the environment are the same.

    Args:
        root_uri: An URL with a host.
        options: See `statelib.settings.storage_options`.
    """
    environment = ((name, value) for name, value in os.environ.items() if name.startswith(_VARIABLES))
    return _client(root_uri, tuple(sorted(options.items())), tuple(sorted(environment)))


@lru_cache(maxsize=_MOST_CLIENTS)
def _client(
    root_uri: str, options: tuple[tuple[str, str], ...], _environment: tuple[tuple[str, str], ...]
) -> ObjectStore:
    return from_url(root_uri, **obstore_arguments(dict(options)))
