"""Options of an object store: one mapping for obstore, which holds the objects, and delta-rs, which holds Delta logs.

Both are built on Rust's ``object_store`` and share its names. obstore wants those of the HTTP client and of retries
apart from the others; delta-rs takes them all as they are, and names that it does not know in silence, which is why a
`Storage` is opened for every table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLIENT_OPTIONS = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "read_timeout", "proxy_url",
    "pool_idle_timeout", "user_agent", "root_certificate",
})  # fmt: skip

_RETRY_OPTIONS = frozenset({
    "max_retries", "retry_timeout", "backoff_config.init_backoff", "backoff_config.max_backoff",
})  # fmt: skip

_DELTA_OPTIONS = ("aws_s3_allow_unsafe_rename", "aws_s3_locking_provider", "delta_dynamo")
"""Prefixes of options that only delta-rs knows."""

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000}

CREDENTIAL = re.compile(
    r"secret|password|passphrase|token|credential|signature|access_?key|account_?key|master_?key|customer_?key"
    r"|encryption_?key|sas_?key|api_?key"
)
"""Found in the lower-case name of an option or a variable that holds a credential."""

STORE_PREFIXES = ("aws_", "azure_", "google_")
_OF_AZURE = re.compile(r"account|master|sas|client|fabric|encryption|federated|^access_key$")
_OF_GOOGLE = re.compile(r"service|bearer|application")


def credential_variable(option: str) -> str:
    """The environment variable in which the stores' clients look for a credential that is an option's name."""
    name = option.lower()
    if not name.startswith(STORE_PREFIXES):
        store = "google" if _OF_GOOGLE.search(name) else "azure_storage" if _OF_AZURE.search(name) else "aws"
        name = f"{store}_{name}"
    return name.upper()


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How long a request to an object store may take, and how often it is made.

    A request is made again after a connection that failed or broke, an answer of 429 or 5xx, and, where it does not
    matter whether the first one was carried out, after a time-out.

    Attributes:
        connect_timeout_ms: For a connection to be made.
        request_timeout_ms: For one try, the answer's last byte included.
        retries: How many tries follow the first.
        retry_timeout_ms: No try begins later than this after the first; a request's signature does not last for ever.
        retry_backoff_ms: The first pause between tries; each is longer than the one before, by chance.
        retry_backoff_max_ms: The longest pause.
    """

    connect_timeout_ms: int = 5_000
    request_timeout_ms: int = 30_000
    retries: int = 10
    retry_timeout_ms: int = 180_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 15_000

    def options(self) -> dict[str, str]:
        """As options of a store."""
        return {
            "connect_timeout": f"{self.connect_timeout_ms}ms",
            "timeout": f"{self.request_timeout_ms}ms",
            "max_retries": str(self.retries),
            "retry_timeout": f"{self.retry_timeout_ms}ms",
            "backoff_config.init_backoff": f"{self.retry_backoff_ms}ms",
            "backoff_config.max_backoff": f"{self.retry_backoff_max_ms}ms",
        }


LIMIT_SETTINGS = {
    "connect_timeout": "storage_connect_timeout_ms",
    "timeout": "storage_request_timeout_ms",
    "max_retries": "storage_retries",
    "retry_timeout": "storage_retry_timeout_ms",
    "backoff_config.init_backoff": "storage_retry_backoff_ms",
    "backoff_config.max_backoff": "storage_retry_backoff_max_ms",
}
"""The setting that stands for an option."""


def plain_name(option: str) -> str:
    """An option's name in lower case, without the store's."""
    return re.sub("^(aws|azure|google)_", "", option.lower())


def obstore_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `obstore.store.from_url`.

    Raises:
        ConfigurationError: A number or a duration cannot be read.
    """
    arguments: dict[str, Any] = {"config": {}, "client_options": {}, "retry_config": {}}
    retry: dict[str, Any] = {}
    for option, value in options.items():
        key, plain = option.lower(), plain_name(option)
        if plain in _CLIENT_OPTIONS:
            arguments["client_options"][plain] = value
        elif key in _RETRY_OPTIONS:
            retry[key.removeprefix("backoff_config.")] = _parsed(key, value)
        elif not key.startswith(_DELTA_OPTIONS):
            arguments["config"][key] = value
    backoff = {name: retry.pop(name) for name in ("init_backoff", "max_backoff") if name in retry}
    if backoff:
        retry["backoff"] = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=15)} | backoff
    if retry:
        arguments["retry_config"] = retry
    else:
        del arguments["retry_config"]
    return arguments


def _parsed(key: str, value: str) -> int | timedelta:
    if key == "max_retries" and value.isdecimal():
        return int(value)
    duration = re.fullmatch(r"(\d+) *(ms|s|m)", value)
    if key == "max_retries" or duration is None:
        what = f"{value!r} is no {'number' if key == 'max_retries' else 'duration'}"
        raise ConfigurationError(what, setting=key, next_step="write 10 for a number, 500ms, 30s or 3m for a duration")
    return timedelta(milliseconds=int(duration[1]) * _UNITS_MS[duration[2]])
