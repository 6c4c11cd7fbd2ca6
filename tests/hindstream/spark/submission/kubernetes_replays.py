"""The namespace of docs/kubernetes.md, with its accounts and their rights, on a real API server."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import yaml

from tests.conftest import ROOT
from tests.hindstream.spark.submission.kubernetes import Kubernetes, kubernetes
from tests.hindstream.spark.submission.kubernetes_node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMESPACE = "replays"
SUBMITTER, DRIVER = "airflow", "hindstream-driver"

_PAGE = ROOT / "docs" / "kubernetes.md"
_MANIFEST = re.compile(r"^<!-- manifest -->\n```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)

Right = tuple[str, str]
"""A verb and a resource."""


@dataclass(frozen=True)
class Replays:
    """The namespace, and a node for its pods.

    Attributes:
        server: Where it is.
        node: Where its pods run.
    """

    server: Kubernetes
    node: Node

    @property
    def kubeconfig(self) -> str:
        """Of who submits."""
        return str(self.server.client(NAMESPACE, SUBMITTER))

    def used(self, account: str) -> set[Right]:
        """What an account has asked for, and got."""
        asked = [one for one in self.server.asked() if one.account == account and one.code != HTTPStatus.FORBIDDEN]
        created = {("create", one.resource) for one in asked if one.code == HTTPStatus.CREATED}  # by a patch too
        return created | {(one.verb, one.resource) for one in asked}

    def refused(self) -> set[tuple[str, str, str]]:
        """Which account was refused what."""
        return {
            (one.account, one.verb, one.resource) for one in self.server.asked() if one.code == HTTPStatus.FORBIDDEN
        }


@contextmanager
def replays(folder: Path) -> Iterator[Replays]:
    """With an API server of its own.

    Args:
        folder: For all that it has.
    """
    pods = folder / "pods"
    pods.mkdir()
    with kubernetes(folder) as server:
        for one in manifest():
            server.create(one)
        with Node(server, NAMESPACE, pods) as node:
            yield Replays(server, node)


def manifest() -> list[dict[str, Any]]:
    """The objects that the page has."""
    (text,) = _MANIFEST.findall(_PAGE.read_text(encoding="utf-8"))
    return list(yaml.safe_load_all(text))


def granted(account: str) -> set[Right]:
    """What the role of an account on the page allows."""
    (role,) = [one for one in manifest() if one["kind"] == "Role" and one["metadata"]["name"] == account]
    return {(verb, resource) for rule in role["rules"] for verb in rule["verbs"] for resource in rule["resources"]}
