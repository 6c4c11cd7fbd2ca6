"""What clusters say of applications, in the words of their servers."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.spark.submission.cluster import Cluster, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.spark.submission.cluster import State

DRIVER = "/v1/submissions/status/driver-20261129174447-0000"
APP = "/ws/v1/cluster/apps/application_1412438797841_0001"


class Answers(ThreadingHTTPServer):
    """A server of JSON by path, which notes what it was given."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.said: dict[str, Any] = {}
        self.got: list[str] = []
        super().__init__((host, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        said = self.server.said.get(self.path)
        self.send_response(404 if said is None else 200)
        self.end_headers()
        self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

    def do_POST(self) -> None:
        self._do("POST")

    def do_PUT(self) -> None:
        self._do("PUT")

    def _do(self, method: str) -> None:
        given = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.server.got.append(f"{method} {self.path} {given}".rstrip())
        self.do_GET()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Says nothing."""


@pytest.fixture
def answers() -> Iterator[Answers]:
    with Answers() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("driver", "state", "said"),
    [
        ({"success": True, "driverState": "SUBMITTED"}, "active", "SUBMITTED"),
        ({"success": True, "driverState": "RELAUNCHING"}, "active", "RELAUNCHING"),
        ({"success": True, "driverState": "FINISHED"}, "succeeded", "FINISHED"),
        ({"success": True, "driverState": "ERROR", "message": "no jar"}, "failed", "ERROR no jar"),
        ({"success": True, "driverState": "UNKNOWN"}, "unclear", "UNKNOWN"),
        ({"success": False}, "unknown", "not known there"),
    ],
)
def test_standalone(answers: Answers, driver: dict[str, Any], state: State, said: str) -> None:
    """The first master of two stands by, or is gone."""
    answers.said[DRIVER] = driver
    cluster = Cluster("spark://127.0.0.9:7077,127.0.0.1:7077", "cluster", rest_port=answers.server_port)
    assert cluster.status("driver-20261129174447-0000") == Status(state, said)


def test_a_master_that_recovers_or_stands_by_does_not_answer(answers: Answers) -> None:
    """By what it says it would know no driver: who asks would submit another beside one that is alive."""
    why = "java.lang.Exception: Current state is not alive: RECOVERING. Can only request driver status in ALIVE state."
    answers.said[DRIVER] = {"success": False, "message": f"Exception from the cluster:\n{why}\n\torg.apache.spark..."}
    alone = Cluster("spark://127.0.0.1:7077", "cluster", rest_port=answers.server_port)
    with pytest.raises(OSError, match=r"^Exception from the cluster: .*not alive: RECOVERING. Can only.*ALIVE state.$"):
        alone.status("driver-20261129174447-0000")
    with Answers("127.0.0.2", answers.server_port) as leader:
        threading.Thread(target=leader.serve_forever, daemon=True).start()
        leader.said[DRIVER] = {"success": True, "driverState": "RUNNING"}
        both = replace(alone, master="spark://127.0.0.1:7077,127.0.0.2:7077")
        assert both.status("driver-20261129174447-0000") == Status("active", "RUNNING")
        leader.shutdown()


def test_a_server_that_says_no_json(answers: Answers) -> None:
    answers.said[DRIVER] = b"<html>"
    with pytest.raises(OSError, match="JSONDecodeError"):
        Cluster("spark://127.0.0.1:7077", "cluster", rest_port=answers.server_port).status("driver-20261129174447-0000")


@pytest.mark.parametrize(
    ("app", "state", "said"),
    [
        ({"state": "ACCEPTED", "finalStatus": "UNDEFINED", "diagnostics": ""}, "active", "ACCEPTED"),
        ({"state": "FINISHED", "finalStatus": "SUCCEEDED", "diagnostics": ""}, "succeeded", "SUCCEEDED"),
        ({"state": "FINISHED", "finalStatus": "FAILED", "diagnostics": "exit 65"}, "failed", "FAILED exit 65"),
        ({"state": "KILLED", "finalStatus": "KILLED", "diagnostics": ""}, "failed", "KILLED"),
    ],
)
def test_yarn(answers: Answers, app: dict[str, Any], state: State, said: str) -> None:
    answers.said[APP] = {"app": app}
    cluster = Cluster("yarn", "cluster", resource_manager=f"http://127.0.0.1:{answers.server_port}/")
    assert cluster.status("application_1412438797841_0001") == Status(state, said)


KUBERNETES = """#!/bin/sh
test "$*" = "--master k8s://h --conf spark.kubernetes.context=prod --status replays:a-driver" || exit 2
cat >&2 <<END
26/11/30 04:22:41 INFO SparkKubernetesClientFactory: Auto-configuring K8S client using context prod
Submitting a request for the status of submission replays:a-driver in k8s://h.
{said}
END
exit {code}
"""


def on_kubernetes(folder: Path, said: str, code: int = 0) -> Cluster:
    program = folder / "spark-submit"
    program.write_text(KUBERNETES.format(said=said, code=code))
    program.chmod(0o755)
    return Cluster("k8s://h", "cluster", str(program), conf={"spark.kubernetes.context": "prod"})


@pytest.mark.parametrize(
    ("line", "state", "said"),
    [
        ("\t phase: Pending", "active", "PENDING"),
        ("\t phase: Running", "active", "RUNNING"),
        ("\t phase: Succeeded", "succeeded", "SUCCEEDED"),
        ("\t phase: Failed", "failed", "FAILED"),
        ("\t phase: Unknown", "unclear", "UNKNOWN"),
        ("Application not found.", "unknown", "not known there"),
    ],
)
def test_kubernetes(tmp_path: Path, line: str, state: State, said: str) -> None:
    assert on_kubernetes(tmp_path, line).status("replays:a-driver") == Status(state, said)


def test_kubernetes_that_does_not_answer(tmp_path: Path) -> None:
    cluster = on_kubernetes(tmp_path, "java.net.ConnectException: Connection refused\nmore", 1)
    with pytest.raises(OSError, match=r"--status ended with code 1: java.net.ConnectException: Connection refused$"):
        cluster.status("replays:a-driver")


def test_one_that_does_not_answer(answers: Answers) -> None:
    cluster = Cluster("spark://127.0.0.1:7077", "cluster", rest_port=answers.server_port)
    with pytest.raises(OSError, match="404"):
        cluster.status("driver-1")


@pytest.mark.parametrize(
    ("master", "line", "application"),
    [
        (
            "spark://m:7077",
            "26/11/29 17:44:47 INFO ClientEndpoint: Driver successfully submitted as driver-20261129174447-0000",
            "driver-20261129174447-0000",
        ),
        (
            "yarn",
            "26/11/29 17:44:47 INFO YarnClientImpl: Submitted application application_1412438797841_0001",
            "application_1412438797841_0001",
        ),
        (
            "k8s://https://host",
            "Deployed Spark application x with application ID spark-4 and submission ID ns:x-8a-driver into Kubernetes",
            "ns:x-8a-driver",
        ),
        ("k8s://https://host", "with application ID spark-4 and submission ID ns:named into Kubernetes", "ns:named"),
        ("spark://m:7077", "26/11/29 INFO ClientEndpoint: ... waiting before polling master for driver state", None),
        ("local[2]", "driver-20261129174447-0000", None),
    ],
)
def test_the_application_that_spark_submit_tells(master: str, line: str, application: str | None) -> None:
    assert Cluster(master, "cluster").application_in(line) == application


KILL = "/v1/submissions/kill/driver-20261129174447-0000"


@pytest.mark.parametrize(
    ("killed", "driver"),
    [
        ({"success": True, "message": "Kill request for driver-20261129174447-0000 submitted"}, None),
        ({"success": False, "message": "Driver d has already finished"}, {"success": True, "driverState": "FINISHED"}),
        ({"success": False, "message": "Driver d does not exist"}, {"success": False}),
    ],
)
def test_a_driver_of_a_standalone_cluster_is_stopped(answers: Answers, killed: object, driver: object) -> None:
    """The first master of two is gone."""
    answers.said |= {KILL: killed, DRIVER: driver}
    cluster = Cluster("spark://127.0.0.9:7077,127.0.0.1:7077", "cluster", rest_port=answers.server_port)
    cluster.stop("driver-20261129174447-0000")
    assert answers.got == [f"POST {KILL}"]


@pytest.mark.parametrize(
    ("killed", "driver", "message"),
    [
        (None, None, "404"),
        ({"success": False, "message": "not alive: RECOVERING"}, {"success": True, "driverState": "RUNNING"}, "RECOV"),
    ],
)
def test_a_driver_that_cannot_be_stopped(answers: Answers, killed: object, driver: object, message: str) -> None:
    answers.said |= {KILL: killed, DRIVER: driver}
    cluster = Cluster("spark://127.0.0.1:7077", "cluster", rest_port=answers.server_port)
    with pytest.raises(OSError, match=message):
        cluster.stop("driver-20261129174447-0000")


def test_an_application_of_yarn_is_stopped(answers: Answers) -> None:
    answers.said[f"{APP}/state"] = {"state": "RUNNING"}
    cluster = Cluster("yarn", "cluster", resource_manager=f"http://127.0.0.1:{answers.server_port}/")
    cluster.stop("application_1412438797841_0001")
    assert answers.got == [f'PUT {APP}/state {{"state": "KILLED"}}']


def test_a_pod_is_stopped(tmp_path: Path) -> None:
    cluster = on_kubernetes(tmp_path, "Application not found.")
    program = Path(cluster.binary)
    program.write_text(program.read_text().replace("--status", "--kill"))
    cluster.stop("replays:a-driver")
    with pytest.raises(OSError, match="--kill ended with code 2"):
        cluster.stop("replays:another-driver")
