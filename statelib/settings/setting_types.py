"""Kinds of values that settings have: what may be written, what it becomes, and what is refused."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from statelib.settings.durations import LAST_INSTANT_MS, ms_since_1970
from statelib.settings.storage_options import CREDENTIAL, LIMIT_SETTINGS, credential_variable, plain_name

_UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def _without_credentials(options: dict[str, str]) -> dict[str, str]:
    for name, value in options.items():
        if _is_credential(name):
            raise ValueError(f"{name} is a credential: set it in the environment of the process instead")
        if "://" in value and _holds_credentials(value):
            raise ValueError(f"{name} is an address that holds credentials: they belong into the environment")
    return options


def _is_credential(option: str) -> bool:
    return CREDENTIAL.search(option.lower().replace(".", "_")) is not None


def _storage_options(options: dict[str, str]) -> dict[str, str]:
    for name in options:
        if CREDENTIAL.search(name.lower()):
            variable = credential_variable(name)
            raise ValueError(f"{name} is a credential: set {variable} in the environment of the process instead")
        if setting := LIMIT_SETTINGS.get(plain_name(name)):
            raise ValueError(f"{name} has a setting of its own: {setting}")
    return _without_credentials(options)


def _kafka_properties(properties: dict[str, str]) -> dict[str, str]:
    for name in properties:
        if name == "sasl.oauthbearer.token.endpoint.url":
            continue
        if _is_credential(name) or re.search(r"jaas|sasl\.oauthbearer\.config|\.pem$", name):
            variable = f"KAFKA_{name.replace('.', '_').upper()}"
            raise ValueError(f"{name} holds a credential: set {variable} in the environment of the process instead")
    return properties


def _holds_credentials(address: str) -> bool:
    """Whether an address names a user (before the ``@``; Azure has the container there) or is signed."""
    parts = urlsplit(address)
    is_user = parts.username is not None and parts.scheme not in {"abfs", "abfss"}
    return bool(is_user or parts.password or parts.query)


def _without_user(address: str) -> str:
    if _holds_credentials(address):
        raise ValueError("the address holds credentials: set them in the environment of the process instead")
    return address


def _milliseconds(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(r"-?\d+", value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("the time has no time zone: write 2013-02-01T00:00:00Z, or milliseconds since 1970")
        return ms_since_1970(value)
    return value


def _listed(value: object) -> object:
    return [name for part in value.split(",") if (name := part.strip())] if isinstance(value, str) else value


def _duration(value: object) -> object:
    if isinstance(value, (int, float)) or (isinstance(value, str) and re.fullmatch(r"[\d.]+", value)):
        raise ValueError("the time span has no unit: write 7d, 36h or 90min")
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+) ?(s|min|h|d|w)", value)):
        try:
            return int(match[1]) * _UNITS[match[2]]
        except OverflowError:
            raise ValueError(f"the time span is longer than {timedelta.max.days}d") from None
    return value


def _span_or_instant(value: object) -> object:
    if isinstance(value, str) and re.match(r"\d{4}-\d", value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        _milliseconds(value)  # refuses one without time zone
        return value
    return _duration(value)


Address = Annotated[str, AfterValidator(_without_user)]
"""A directory or URL without credentials."""

Instant = Annotated[Annotated[int, Field(le=LAST_INSTANT_MS)], BeforeValidator(_milliseconds)]
"""Milliseconds since 1970; a text or ``datetime`` must say its time zone."""

LatestTime = Annotated[Annotated[timedelta, Field(ge=timedelta(0))] | datetime, BeforeValidator(_span_or_instant)]
"""A `TimeSpan`, or a time with its time zone."""

TimeSpan = Annotated[timedelta, BeforeValidator(_duration)]
"""A text such as ``7d``, or one of those that pydantic knows, such as ISO 8601's ``P7D``."""

Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
"""A text that lists them, with commas between them."""

Options = Annotated[dict[str, str], AfterValidator(_without_credentials)]
"""Names and values without credentials."""

StorageOptions = Annotated[dict[str, str], AfterValidator(_storage_options)]
"""`Options` of an object store's client."""

KafkaProperties = Annotated[dict[str, str], AfterValidator(_kafka_properties)]
"""Properties of a Kafka client without credentials."""
