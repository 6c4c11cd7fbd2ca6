"""A store that speaks S3, in this process (moto)."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

import pytest
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "warehouse"


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    """Options with which `s3://warehouse/...` is a bucket of a server that runs here."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
    yield {
        "aws_endpoint_url": endpoint,
        "aws_region": "us-east-1",
        "aws_access_key_id": "an-access-key-id",
        "aws_secret_access_key": "a-secret-access-key",
        "allow_http": "true",
    }
    server.stop()
