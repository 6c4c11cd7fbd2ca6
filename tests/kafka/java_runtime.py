"""Which Java runs here, and whom it trusts."""

from __future__ import annotations

import os
import shutil
import ssl
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.utils import CryptographyDeprecationWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PASSWORD = "changeit"  # nothing in it is a secret; Java wants one


class JavaPartsMissing(Exception):
    """Something in Java that a test needs can be neither built nor fetched."""


def executable() -> Path:
    """The ``java`` that ``./dev`` has chosen, or that of the machine."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    if not found or not Path(found).exists():
        raise JavaPartsMissing(
            "there is no Java (JAVA_HOME, PATH): run the tests by ./dev test, which has one in .venv if need be"
        )
    return Path(found)


def trust_options(folder: Path) -> list[str]:
    """Options with which the Java of the packages trusts whom this machine trusts.

    It comes with a list of its own, in which a company's authority is missing; any other Java is left alone.

    Args:
        folder: For the list.
    """
    authorities = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not authorities or not executable().is_relative_to(sys.prefix):
        return []
    named = [
        pkcs12.PKCS12Certificate(certificate, str(number).encode())
        for number, certificate in enumerate(_certificates(authorities))
    ]
    file = folder / "trusted.p12"
    file.write_bytes(pkcs12.serialize_java_truststore(named, BestAvailableEncryption(_PASSWORD.encode())))
    return [f"-Djavax.net.ssl.trustStore={file}", f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}"]


def _certificates(authorities: Iterable[bytes]) -> Iterator[x509.Certificate]:
    """Those that can be read: some of the old ones do not keep to the standard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        for authority in authorities:
            with suppress(ValueError):
                yield x509.load_der_x509_certificate(authority)
