"""A server that speaks S3, in a process of its own on loopback: SeaweedFS, with conditional creation."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

BUCKET = "warehouse"
REGION = "us-east-1"
ACCESS_KEY_ID = "key-id-2cH8nQ5vYd"
SECRET_ACCESS_KEY = "secret-4Zq8sW1xTnV7bL0c"

_PORTS = (
    "s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port",
    "filer.port.grpc",
)  # fmt: skip
"""All that it listens on; a port that is not given would be a fixed one."""

_START_SECONDS = 60
_STARTS = 3


@dataclass(frozen=True)
class S3Server:
    """A running server with one bucket, ``warehouse``, and one user who may do everything."""

    endpoint: str

    @property
    def settings(self) -> dict[str, str]:
        """Options without the credentials, as the settings have them."""
        return {"aws_endpoint_url": self.endpoint, "aws_region": REGION, "allow_http": "true"}

    @property
    def credentials(self) -> dict[str, str]:
        """What belongs into the environment."""
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY}

    @staticmethod
    def credentials_of(user: str) -> dict[str, str]:
        """Those of a user who may do what policies allow."""
        return {"AWS_ACCESS_KEY_ID": f"key-id-of-{user}", "AWS_SECRET_ACCESS_KEY": f"secret-of-{user}-7hTq"}

    @property
    def options(self) -> dict[str, str]:
        """Both, for a `Storage` or a Delta table."""
        return self.settings | {name.lower(): value for name, value in self.credentials.items()}


@contextmanager
def s3_server(
    folder: Path, *buckets: str, users: Mapping[str, Sequence[Mapping[str, object]]] | None = None
) -> Iterator[S3Server]:
    """Runs a server, whose files and log are in ``folder``, for as long as the context lasts.

    Args:
        folder: Exists.
        buckets: More than the one.
        users: By name, the policies of IAM that say what they may do.
    """
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY_ID, "secretKey": SECRET_ACCESS_KEY}],
        "actions": ["Admin"],
    }
    named = {f"{user}-{n}": policy for user, held in (users or {}).items() for n, policy in enumerate(held)}
    limited = [
        {
            "name": user,
            "credentials": [dict(zip(("accessKey", "secretKey"), S3Server.credentials_of(user).values(), strict=True))],
            "policyNames": [f"{user}-{n}" for n in range(len(held))],
        }
        for user, held in (users or {}).items()
    ]
    policies = [{"name": name, "content": json.dumps(policy)} for name, policy in named.items()]
    (folder / "s3.json").write_text(json.dumps({"identities": [identity, *limited], "policies": policies}))
    with ExitStack() as stack:
        yield _started(stack, folder, (BUCKET, *buckets))


def _started(stack: ExitStack, folder: Path, buckets: Sequence[str]) -> S3Server:
    """Starts the server, which ends with ``stack``; somebody else may take one of its ports in between."""
    for number in range(_STARTS):
        ports = _free_ports()
        data = folder / f"data{number}"
        data.mkdir()
        log = stack.enter_context((folder / "weed.log").open("ab"))
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}  # else an admin's
        process = subprocess.Popen(_command(folder, data, ports), env=environ, stdout=log, stderr=log, cwd=folder)
        stack.callback(_stop, process)
        server = S3Server(f"http://127.0.0.1:{ports['s3.port']}")
        filer = f"http://127.0.0.1:{ports['filer.port']}/buckets"
        if _is_ready(process, server, [f"{filer}/{bucket}/" for bucket in buckets]):
            return server
    raise RuntimeError(f"the server does not start: {(folder / 'weed.log').read_text()[-2000:]}")


def _command(folder: Path, data: Path, ports: dict[str, int]) -> list[str]:
    return [
        str(Path(sys.executable).with_name("weed")),
        "server",
        f"-dir={data}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=100",
        "-volume.preStopSeconds=0",
        "-filer",
        "-s3",
        f"-s3.config={folder / 's3.json'}",
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]


def _free_ports() -> dict[str, int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in _PORTS]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in zip(_PORTS, sockets, strict=True)}


def _post(url: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=5).close()


def _is_ready(process: subprocess.Popen[bytes], server: S3Server, buckets: Sequence[str]) -> bool:
    """Makes the buckets and waits until an object can be written, which is some seconds after it listens."""
    store = S3Store(
        BUCKET,
        endpoint=server.endpoint,
        region=REGION,
        access_key_id=ACCESS_KEY_ID,
        secret_access_key=SECRET_ACCESS_KEY,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    steps: list[Callable[[], object]] = [
        *(partial(_post, bucket) for bucket in buckets),
        lambda: obstore.put(store, "ready", b""),
    ]
    deadline = time.monotonic() + _START_SECONDS
    while steps and process.poll() is None and time.monotonic() < deadline:
        try:
            steps[0]()
        except (BaseError, OSError):  # not yet
            time.sleep(0.1)
        else:
            del steps[0]
    return not steps


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # a gentler end takes it ten seconds, and its files are not needed any more
    process.wait()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server for all tests of this process: each takes a prefix of its own."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_options(s3: S3Server) -> dict[str, str]:
    """Options with which ``s3://warehouse/...`` is a bucket of that server."""
    return s3.options
