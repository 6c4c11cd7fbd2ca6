"""Errors of Kafka's client as Hindstream's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from statelib.errors.kinds import ConfigurationError, FencedError, RetryableError

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = frozenset(
    getattr(KafkaError, name)
    for name in (
        "_AUTHENTICATION", "_INVALID_ARG", "_SSL", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC",
        "CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "INVALID_CONFIG", "INVALID_REPLICATION_FACTOR",
        "POLICY_VIOLATION", "SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "TOPIC_EXCEPTION",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART", "UNSUPPORTED_VERSION",
    )
)  # fmt: skip
"""Errors that come again until somebody changes something."""

_UNAUTHORIZED = frozenset(
    getattr(KafkaError, f"{what}_AUTHORIZATION_FAILED") for what in ("CLUSTER", "GROUP", "TOPIC", "TRANSACTIONAL_ID")
)
"""The cluster knows who asks, and has no ACL for it."""

_OVERTAKEN = frozenset(getattr(KafkaError, name) for name in ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"))
"""A producer of the same transactional id has come since."""


@contextmanager
def kafka_errors(**place: object) -> Iterator[None]:
    """Turns errors of the client into Hindstream's.

    Raises:
        ConfigurationError: The cluster refuses, and would again.
        FencedError: Another process does the same, and came later.
        RetryableError: It did not answer, or not now.
    """
    try:
        yield
    except KafkaException as error:
        found = error.args[0]
        code, reason = (found.code(), found.str()) if isinstance(found, KafkaError) else (None, str(found))
        if code in _OVERTAKEN:
            step = "nothing: what the other one does stands"
            what = f"another process has taken over: {reason}"
            raise FencedError(what, **place, next_step=step) from error
        if code in REFUSED:
            step = "check the topic's name, the setting kafka and the credentials in the environment"
            if code in _UNAUTHORIZED:
                step = "let the user of these credentials do that by an ACL: docs/security.md has all rights"
            raise ConfigurationError(f"Kafka refuses: {reason}", **place, next_step=step) from error
        step = "look whether the brokers can be reached, and run the same command again"
        raise RetryableError(f"Kafka did not answer: {reason}", **place, next_step=step) from error
