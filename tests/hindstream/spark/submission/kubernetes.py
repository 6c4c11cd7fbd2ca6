"""Kubernetes' own API server: its objects, who may do what with them, and who has done what."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.hindstream.airflow.airflow_environ import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMED_BY = "HINDSTREAM_KUBE_APISERVER"
PROGRAM = os.environ.pop(_NAMED_BY, None)  # of our own settings, commands know each
"""The API server with its etcd, compiled."""

_BUILT = "cd tests/hindstream/spark/submission/kube-apiserver && go build -o /tmp/kube-apiserver ."

has_program = pytest.mark.skipif(
    PROGRAM is None,
    reason=f"{_NAMED_BY} names no API server of Kubernetes; to build one, which takes long: {_BUILT}",
)

_ADMINISTRATOR = "of-an-administrator"
_LOOKS = 240
_PLACES = {
    "Namespace": "api/v1/namespaces",
    "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts",
    "Role": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}
_EVERYTHING = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}


@dataclass(frozen=True)
class Asked:
    """One request of an account.

    Attributes:
        account: A service account, without its namespace.
        verb: As a role names it.
        resource: As a role names it.
        code: Of HTTP's.
    """

    account: str
    verb: str
    resource: str
    code: int


@dataclass(frozen=True)
class Kubernetes:
    """A running API server.

    Attributes:
        address: Where it answers.
        folder: Holds its log, and the configurations of its clients.
    """

    address: str
    folder: Path
    _context: ssl.SSLContext = field(default_factory=ssl._create_unverified_context)

    @property
    def master(self) -> str:
        """As Spark names it."""
        return f"k8s://{self.address}"

    def ask(self, path: str, method: str = "GET", body: dict[str, Any] | None = None) -> Any:
        """What it answers its administrator."""
        return json.loads(self._answer(path, method, body))

    def check_ready(self) -> None:
        """Raises an ``URLError`` if it is not."""
        self._answer("readyz")

    def _answer(self, path: str, method: str = "GET", body: dict[str, Any] | None = None) -> bytes:
        request = urllib.request.Request(f"{self.address}/{path}", method=method)
        request.add_header("Authorization", f"Bearer {_ADMINISTRATOR}")
        if body is not None:
            kind = "merge-patch+json" if method == "PATCH" else "json"
            request.add_header("Content-Type", f"application/{kind}")
            request.data = json.dumps(body).encode()
        with urllib.request.urlopen(request, context=self._context) as answer:
            found: bytes = answer.read()
            return found

    def create(self, one: dict[str, Any]) -> None:
        """An object of those that manifests have."""
        self.ask(_PLACES[one["kind"]].format(one["metadata"].get("namespace")), "POST", one)

    def client(self, namespace: str, account: str) -> Path:
        """The configuration, called kubeconfig, of one who is a service account."""
        path = f"{_PLACES['ServiceAccount'].format(namespace)}/{account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        user = {"token": self.ask(path, "POST", request)["status"]["token"]}
        config = self.folder / f"kubeconfig-{account}"
        config.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "here",
                    "clusters": [
                        {"name": "here", "cluster": {"server": self.address, "insecure-skip-tls-verify": True}}
                    ],
                    "users": [{"name": account, "user": user}],
                    "contexts": [{"name": "here", "context": {"cluster": "here", "user": account}}],
                }
            )
        )
        return config

    def asked(self) -> set[Asked]:
        """What service accounts have asked for."""
        found = set()
        for line in (self.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            kind, *names = event["user"]["username"].split(":")[1:] or [""]
            if kind == "serviceaccount" and (what := event.get("objectRef")) and "responseStatus" in event:
                resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
                found.add(Asked(names[-1], event["verb"], resource, event["responseStatus"]["code"]))
        return found


@contextmanager
def kubernetes(folder: Path) -> Iterator[Kubernetes]:
    """With an etcd of its own, and nothing that works on what it stores: no scheduler, no controllers.

    Args:
        folder: For its data, its logs, and the configurations of its clients.
    """
    etcd, peers, port = free_port(), free_port(), free_port()
    key, tokens, policy = folder / "service-accounts.pem", folder / "tokens", folder / "policy"
    of_key = (Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    key.write_bytes(rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(*of_key))
    tokens.write_text(f'{_ADMINISTRATOR},admin,1,"system:masters"\n')
    policy.write_text(json.dumps(_EVERYTHING))
    command = [
        *(str(PROGRAM), folder / "etcd", str(etcd), str(peers), f"--secure-port={port}"),
        *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"),
        *(f"--cert-dir={folder / 'certificates'}", f"--service-account-key-file={key}"),
        *(f"--service-account-signing-key-file={key}", "--service-account-issuer=https://127.0.0.1"),
        *("--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC", f"--token-auth-file={tokens}"),
        *(f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}"),
    ]
    found = Kubernetes(f"https://127.0.0.1:{port}", folder)
    with (folder / "kubernetes.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _await(found, process)
            yield found
        finally:
            process.kill()


def _await(server: Kubernetes, process: subprocess.Popen[bytes]) -> None:
    log = server.folder / "kubernetes.log"
    for _ in range(_LOOKS):
        assert process.poll() is None, log.read_text()
        with suppress(urllib.error.URLError):
            server.check_ready()
            return
        time.sleep(0.5)
    raise AssertionError(log.read_text())
