"""Where applications are submitted, and what becomes of them there: standalone, YARN, Kubernetes.

A standalone master is asked by its REST server (``spark.master.rest.enabled``), YARN's by that of its resource manager,
Kubernetes through ``spark-submit --status``.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

State = Literal["active", "succeeded", "failed", "unknown"]
Kind = Literal["standalone", "yarn", "kubernetes", "local"]

_WITHIN_S = 30

_ACTIVE = {
    *("SUBMITTED", "RUNNING", "RELAUNCHING"),  # standalone; UNKNOWN is told apart
    *("NEW", "NEW_SAVING", "ACCEPTED"),  # YARN, and two of those above
    "PENDING",  # Kubernetes, and one of those above
}
_SUCCEEDED = {"FINISHED", "SUCCEEDED"}

_APPLICATION: dict[Kind, re.Pattern[str]] = {
    "standalone": re.compile(r"\b(driver-\d{14}-\d+)"),
    "yarn": re.compile(r"\b(application_\d+_\d+)"),
    "kubernetes": re.compile(r"submission ID (\S+:\S+-driver)"),
}
_PHASE = re.compile(r"phase: (\w+)")


@dataclass(frozen=True, slots=True)
class Status:
    """What a cluster says of an application.

    Attributes:
        state: ``unknown``: the cluster does not know it, or not now.
        said: In the cluster's words.
    """

    state: State
    said: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where applications are submitted; plain data, which a trigger of Airflow's takes along.

    Attributes:
        master: ``spark://HOST:PORT``, ``yarn``, ``k8s://URL`` or ``local[N]``.
        deploy_mode: ``cluster``: the driver runs there. ``client``: in the process of spark-submit.
        binary: The program spark-submit.
        rest_port: Of the REST server of a standalone master.
        rest_scheme: ``http`` or ``https``.
        resource_manager: The web address of YARN's.
    """

    master: str
    deploy_mode: str = "client"
    binary: str = "spark-submit"
    rest_port: int = 6066
    rest_scheme: str = "http"
    resource_manager: str | None = None

    @property
    def kind(self) -> Kind:
        """By the master's address."""
        if self.master.startswith("spark://"):
            return "standalone"
        if self.master.startswith("k8s://"):
            return "kubernetes"
        return "yarn" if self.master.startswith("yarn") else "local"

    @property
    def is_elsewhere(self) -> bool:
        """Whether the driver outlives the process that submits it."""
        return self.deploy_mode == "cluster" and self.kind != "local"

    def application_in(self, line: str) -> str | None:
        """The id of an application that spark-submit has printed in a line."""
        pattern = _APPLICATION.get(self.kind)
        found = pattern.search(line) if pattern is not None else None
        return found[1] if found else None

    def status(self, application: str) -> Status:
        """What has become of an application.

        Raises:
            OSError: The cluster does not answer.
        """
        if self.kind == "standalone":
            return self._of_standalone(application)
        if self.kind == "yarn":
            return self._of_yarn(application)
        return self._of_kubernetes(application)

    def _of_standalone(self, application: str) -> Status:
        error: OSError = OSError(f"{self.master} names no master")
        for address in self.master.removeprefix("spark://").split(","):
            host = urlsplit(f"//{address}").hostname
            try:
                said = _read(f"{self.rest_scheme}://{host}:{self.rest_port}/v1/submissions/status/{application}")
            except OSError as failed:  # one that stands by, or is gone
                error = failed
                continue
            return _status(said.get("driverState") if said.get("success") else None, str(said.get("message") or ""))
        raise error

    def _of_yarn(self, application: str) -> Status:
        said = _read(f"{str(self.resource_manager).rstrip('/')}/ws/v1/cluster/apps/{application}").get("app", {})
        state = said.get("state")
        return _status(said.get("finalStatus") if state == "FINISHED" else state, str(said.get("diagnostics") or ""))

    def _of_kubernetes(self, application: str) -> Status:
        command = [self.binary, "--master", self.master, "--status", application]
        done = subprocess.run(  # noqa: S603 - the user's own
            command, capture_output=True, text=True, check=False, timeout=10 * _WITHIN_S
        )
        found = _PHASE.findall(done.stdout + done.stderr)
        return _status(found[-1].upper() if found else None, "")


def _status(state: str | None, more: str) -> Status:
    said = " ".join(part for part in (state or "not known there", more.strip()) if part)
    if state is None or state == "UNKNOWN":
        return Status("unknown", said)
    if state in _ACTIVE:
        return Status("active", said)
    return Status("succeeded" if state in _SUCCEEDED else "failed", said)


def _read(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=_WITHIN_S) as answer:  # noqa: S310 - http(s), of the connection
        found: dict[str, Any] = json.load(answer)
        return found
