"""What a store's errors mean to the user."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError, UnknownConfigurationKeyError

from statelib.errors.error_numbers import meaning
from statelib.errors.kinds import ConfigurationError, HindstreamError, InputError
from statelib.settings.storage_options import CREDENTIAL, STORE_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST_REASON = 400
_SHORTEST_SECRET = 4
"""Shorter option values (``true``, ``3s``) are no secrets, and taking them out would garble the message."""

_OS_ERROR = re.compile(r"\(os error (\d+)\)")

_ANSWER = re.compile(r"<\?xml.*", re.DOTALL)
_ANSWER_PARTS = re.compile(r"<(Code|Message)>([^<]*)</")
"""What is worth telling of a store's answer in XML, which may quote the access key, the signature and the request."""

_CREDENTIALS = "check the credentials in the environment, and the bucket's policy"

_REFUSED = re.compile(r"AccessDenied|Access Denied|403 Forbidden|lacked the necessary privileges")
"""Only some of the clients' calls tell a refusal by its type."""

_METADATA = re.compile(r"//169\.254\.")
"""Where clients look for the role of a machine if the environment has no credentials."""

_RIGHTS = (
    (re.compile(r"list request"), "list what is there (s3:ListBucket)"),
    (re.compile(r"DeleteObjects|performing DELETE"), "delete there (s3:DeleteObject)"),
    (re.compile(r"performing (PUT|POST)"), "write there (s3:PutObject)"),
    (re.compile(r"performing (GET|HEAD)"), "read there (s3:GetObject)"),
)
"""By what an error says was asked for, the right that this takes."""


class ObjectNotFoundError(InputError):
    """There is no object at the path. Callers who know what that means for the user say so instead."""


@contextmanager
def mapped_errors(verb: str, address: str, options: Mapping[str, str]) -> Iterator[None]:
    """Maps the errors of obstore and of the file system to Hindstream's.

    The original is not chained: its text may hold a signed URL or a header.

    Args:
        verb: What is being done, as in "cannot read".
        address: Full address of the object.
        options: The store's options; none of their values gets into a message.
    """

    def problem(kind: type[HindstreamError], error: Exception, next_step: str) -> HindstreamError:
        return kind(f"cannot {verb}: {reason_without_secrets(error, options)}", file=address, next_step=next_step)

    try:
        yield
    except HindstreamError:
        raise
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:  # a directory is no object
        if verb in {"read", "open", "look up", "download"}:
            raise ObjectNotFoundError("there is no such object", file=address) from None
        raise problem(ConfigurationError, error, "check the address: its bucket or directory is not there") from None
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise problem(ConfigurationError, error, missing_right(error) or _CREDENTIALS) from None
    except (UnknownConfigurationKeyError, ValueError) as error:
        raise problem(ConfigurationError, error, "check the address and the storage options") from None
    except (BaseError, OSError) as error:
        kind, next_step = store_meaning(error)
        if verb == "open the storage" and kind is not ConfigurationError:
            raise problem(ConfigurationError, error, "check the address and the storage options") from None
        raise problem(kind, error, next_step) from None


def store_meaning(error: BaseException) -> tuple[type[HindstreamError], str]:
    """The kind of a store's error, and the next step."""
    right = missing_right(error)
    return meaning(error_number(error)) if right is None else (ConfigurationError, right)


def missing_right(error: BaseException) -> str | None:
    """What to do where a store knows who asks, and refuses it; None: it was something else."""
    said = str(error)
    if not _REFUSED.search(said):
        return None
    right = next((right for request, right in _RIGHTS if request.search(said)), None)
    if right is None or _METADATA.search(said):
        return _CREDENTIALS
    return f"let the credentials of this process {right}: docs/security.md has all rights"


def error_number(error: BaseException) -> int | None:
    """The operating system's error number; obstore and delta-rs have it only in words."""
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    said = _OS_ERROR.search(str(error))
    return int(said[1]) if said else None


def reason_without_secrets(error: BaseException, options: Mapping[str, str]) -> str:
    """What a store's error says, on one line, without option values, credentials of the environment, signed queries.

    A dump of the request (after an empty line) and a backtrace (numbered lines) are left out.
    """
    text = re.split(r"\n\s*\n|\n\s*\d+: ", str(error), maxsplit=1)[0]
    text = _ANSWER.sub(lambda answer: ": ".join(part[2] for part in _ANSWER_PARTS.finditer(answer[0])), text)
    text = re.sub(r"\x1b\[\d*m|\u21b3", "", text)  # deltalake's colours and arrows
    text = re.sub(r"\?[^\s\"')]*", "?...", text)
    for value in sorted({*options.values(), *_credentials()}, key=len, reverse=True):
        if len(value) > _SHORTEST_SECRET:
            text = text.replace(value, "...")
    return " ".join(text.split())[:_LONGEST_REASON]


def _credentials() -> list[str]:
    """What the stores' clients find in the environment."""
    return [
        value
        for name, value in os.environ.items()
        if name.lower().startswith(STORE_PREFIXES) and CREDENTIAL.search(name.lower())
    ]
