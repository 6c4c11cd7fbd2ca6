"""Where applications are submitted, and what becomes of them there: standalone, YARN, Kubernetes.

A standalone master is asked by its REST server (``spark.master.rest.enabled``), YARN's by that of its resource manager,
Kubernetes through ``spark-submit --status``.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

State = Literal["active", "succeeded", "failed", "unclear", "unknown"]
Kind = Literal["standalone", "yarn", "kubernetes", "local"]

_WITHIN_S = 30

_ACTIVE = {
    *("SUBMITTED", "RUNNING", "RELAUNCHING"),  # standalone
    *("NEW", "NEW_SAVING", "ACCEPTED"),  # YARN, and two of those above
    "PENDING",  # Kubernetes, and one of those above
}
_SUCCEEDED = {"FINISHED", "SUCCEEDED"}

_APPLICATION: dict[Kind, re.Pattern[str]] = {
    "standalone": re.compile(r"\b(driver-\d{14}-\d+)"),
    "yarn": re.compile(r"\b(application_\d+_\d+)"),
    "kubernetes": re.compile(r"submission ID (\S+:\S+)"),
}
_PHASE = re.compile(r"phase: (\w+)")
_NO_POD = re.compile(r"Application not found|No applications found")

_TO_ASK = (
    "spark.kubernetes.context",
    "spark.kubernetes.trust.certificates",
    "spark.kubernetes.authenticate.submission.",
)


@dataclass(frozen=True, slots=True)
class Status:
    """What a cluster says of an application.

    Attributes:
        state: ``unclear``: it may be at work, and the cluster cannot tell now. ``unknown``: the cluster has none of
            that id.
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
        conf: Of Spark's, what it takes to ask Kubernetes.
    """

    master: str
    deploy_mode: str = "client"
    binary: str = "spark-submit"
    rest_port: int = 6066
    rest_scheme: str = "http"
    resource_manager: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

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

    def stop(self, application: str) -> None:
        """Has the cluster end an application; nothing, if it has ended. It may go on for some seconds.

        Raises:
            OSError: The cluster does not answer, or refuses.
        """
        if self.kind == "standalone":
            self._stop_on_standalone(application)
        elif self.kind == "yarn":
            _read(f"{self._of_resource_manager(application)}/state", "PUT", {"state": "KILLED"})
        else:
            self._spark_submit("--kill", application)

    def _stop_on_standalone(self, application: str) -> None:
        error: OSError = OSError(f"{self.master} names no master")
        for server in self._rest_servers():
            try:
                said = _read(f"{server}/kill/{application}", "POST")
            except OSError as failed:
                error = failed
                continue
            if said.get("success"):
                return
            error = OSError(str(said.get("message")))
        if self.status(application).state in {"active", "unclear"}:
            raise error

    def _rest_servers(self) -> list[str]:
        hosts = [urlsplit(f"//{address}").hostname for address in self.master.removeprefix("spark://").split(",")]
        return [f"{self.rest_scheme}://{host}:{self.rest_port}/v1/submissions" for host in hosts]

    def _of_standalone(self, application: str) -> Status:
        error: OSError = OSError(f"{self.master} names no master")
        for server in self._rest_servers():
            try:
                said = _read(f"{server}/status/{application}")
            except OSError as failed:  # one that is gone
                error = failed
                continue
            message = str(said.get("message") or "")
            if (
                not said.get("success") and message
            ):  # it stands by or recovers; of a driver that is unknown it says nothing
                error = OSError(" ".join(message.splitlines()[:2]))
                continue
            return _status(said.get("driverState") if said.get("success") else None, message)
        raise error

    def _of_yarn(self, application: str) -> Status:
        said = _read(self._of_resource_manager(application)).get("app", {})
        state = said.get("state")
        return _status(said.get("finalStatus") if state == "FINISHED" else state, str(said.get("diagnostics") or ""))

    def _of_resource_manager(self, application: str) -> str:
        return f"{str(self.resource_manager).rstrip('/')}/ws/v1/cluster/apps/{application}"

    def _of_kubernetes(self, application: str) -> Status:
        said = self._spark_submit("--status", application)
        if found := _PHASE.findall(said):
            return _status(found[-1].upper(), "")
        if _NO_POD.search(said):
            return _status(None, "")
        raise OSError(f"spark-submit --status does not tell: {last_error(said.splitlines())}")

    def _spark_submit(self, what: str, application: str) -> str:
        conf = [word for name, value in self.conf.items() for word in ("--conf", f"{name}={value}")]
        command = [self.binary, "--master", self.master, *conf, what, application]
        try:
            done = subprocess.run(  # noqa: S603 - the user's own
                command, capture_output=True, text=True, errors="replace", check=False, timeout=10 * _WITHIN_S
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"spark-submit {what} has not ended in {10 * _WITHIN_S} s") from error
        said = done.stdout + done.stderr
        if done.returncode and not _PHASE.search(said) and not _NO_POD.search(said):
            raise OSError(f"spark-submit {what} ended with code {done.returncode}: {last_error(said.splitlines())}")
        return said


def conf_to_ask(conf: Mapping[str, object]) -> dict[str, str]:
    """Of a configuration of Spark, what it takes to ask Kubernetes what becomes of an application."""
    return {name: str(value) for name, value in conf.items() if name.startswith(_TO_ASK)}


def last_error(lines: list[str]) -> str:
    """The line of spark-submit's that says most of how it has failed."""
    told = [line for line in lines if line.strip()]
    errors = [line for line in told if "Exception" in line or "ERROR" in line or "error" in line.lower()]
    return (errors or told or ["it said nothing"])[-1].strip()


def _status(state: str | None, more: str) -> Status:
    said = " ".join(part for part in (state or "not known there", more.strip()) if part)
    if state is None:
        return Status("unknown", said)
    if state == "UNKNOWN":  # a standalone master that recovers, or a node of Kubernetes that does not answer
        return Status("unclear", said)
    if state in _ACTIVE:
        return Status("active", said)
    return Status("succeeded" if state in _SUCCEEDED else "failed", said)


def _read(url: str, method: str = "GET", given: object = None) -> dict[str, Any]:
    body = None if given is None else json.dumps(given).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_WITHIN_S) as answer:  # noqa: S310 - http(s), of the connection
            found: dict[str, Any] = json.load(answer)
            return found
    except (HTTPException, ValueError) as error:  # a server that is just being ended
        raise OSError(f"{type(error).__name__}: {error}") from error
