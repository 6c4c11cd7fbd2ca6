"""A node of Kubernetes whose pods are processes of this machine: what a kubelet does, without images and networks.

Spark's pods have no command, only arguments: ``driver ...`` or ``executor``. They are run as our image runs them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.error
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hindstream.spark.submission.kubernetes import Kubernetes

_ENTRYPOINT = ROOT / "docker" / "spark-pod"
_HOST = "127.0.0.1"

Pod = dict[str, Any]


class Node:
    """Runs all pods that there are in a namespace, each once, and tells the API server how they end.

    Args:
        server: Whose pods.
        namespace: Where they are.
        folder: For what pods mount, and for their logs.
    """

    def __init__(self, server: Kubernetes, namespace: str, folder: Path) -> None:
        self._server = server
        self._namespace = namespace
        self._objects = f"api/v1/namespaces/{namespace}"
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._told: set[str] = set()
        self._ended = Event()
        self._thread = Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for pod in self._processes:
            self.kill(pod)

    @property
    def drivers(self) -> list[str]:
        """The names of all pods of drivers that have been started, the oldest first."""
        return [name for name in list(self._processes) if name.endswith("-driver")]

    @property
    def executors(self) -> list[str]:
        """The names of all other pods that have been started, the oldest first."""
        return [name for name in list(self._processes) if not name.endswith("-driver")]

    def kill(self, pod: str) -> None:
        """As the node's kernel does if there is no memory left."""
        process = self._processes[pod]
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def log(self, pod: str) -> str:
        """What its process has said."""
        return (self._folder / pod / "log").read_text()

    def _work(self) -> None:
        while not self._ended.wait(0.3):
            pods: dict[str, Pod] = {
                pod["metadata"]["name"]: pod for pod in self._server.ask(f"{self._objects}/pods")["items"]
            }
            for name, pod in pods.items():
                if name not in self._processes:
                    with suppress(urllib.error.HTTPError):  # what it mounts is not there yet
                        self._processes[name] = self._start(pod)
                        self._tell(name, "Running")
            for name, process in self._processes.items():
                if name not in pods:
                    self.kill(name)  # deleted: by the driver, when it has ended
                elif name not in self._told and process.poll() is not None:
                    self._told.add(name)
                    self._tell(name, "Succeeded" if process.returncode == 0 else "Failed", process.returncode)

    def _tell(self, pod: str, phase: str, code: int | None = None) -> None:
        state: dict[str, Any] = {"running": {"startedAt": _now()}}
        if code is not None:
            state = {"terminated": {"exitCode": abs(code), "finishedAt": _now(), "reason": phase}}
        container = {"name": "spark", "image": "", "imageID": "", "state": state, "ready": code is None}
        status = {
            "phase": phase,
            "podIP": _HOST,
            "startTime": _now(),
            "containerStatuses": [{**container, "restartCount": 0}],
            "conditions": [{"type": "Ready", "status": str(code is None)}],
        }
        with suppress(urllib.error.HTTPError):  # it was deleted meanwhile
            self._server.ask(f"{self._objects}/pods/{pod}/status", "PATCH", {"status": status})

    def _start(self, pod: Pod) -> subprocess.Popen[bytes]:
        name, (container,) = pod["metadata"]["name"], pod["spec"]["containers"]
        place = self._folder / name
        place.mkdir(exist_ok=True)
        mounts = self._mounted(pod, place)
        environ = {one["name"]: _here(_value(one, pod), mounts) for one in container["env"]}
        account = pod["spec"]["serviceAccountName"]
        environ["KUBECONFIG"] = str(self._server.client(self._namespace, account))  # a pod finds it in files
        kind, *arguments = [_here(word, mounts) for word in container["args"]]
        conf = self._of_this_machine() if kind == "driver" else []
        with (place / "log").open("wb") as log:
            return subprocess.Popen(
                [_ENTRYPOINT, kind, *conf, *arguments],
                env=os.environ | environ,
                stdout=log,
                stderr=log,
                cwd=place,
                start_new_session=True,
            )

    def _mounted(self, pod: Pod, place: Path) -> dict[str, Path]:
        """The folders of this machine that stand for those of the container."""
        maps = {volume["name"]: volume.get("configMap") for volume in pod["spec"]["volumes"]}
        (container,) = pod["spec"]["containers"]
        mounts = {mount["mountPath"]: place / mount["name"] for mount in container["volumeMounts"]}
        for folder in mounts.values():
            folder.mkdir(exist_ok=True)
            if mapped := maps[folder.name]:
                found = self._server.ask(f"{self._objects}/configmaps/{mapped['name']}")["data"]
                for file, text in found.items():
                    (folder / file).write_text(text)
        return mounts

    def _of_this_machine(self) -> list[str]:
        """There are no names of services, and all pods have one address."""
        conf = {
            "spark.driver.host": _HOST,
            "spark.driver.port": "0",
            "spark.driver.blockManager.port": "0",
            "spark.kubernetes.driver.master": self._server.address,
        }
        return [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]


def _here(word: str, mounts: dict[str, Path]) -> str:
    """A path in the container, as one of this machine."""
    for mount, folder in mounts.items():
        if word == mount or word.startswith(f"{mount}/"):
            return str(folder) + word.removeprefix(mount)
    return word


def _value(variable: dict[str, Any], pod: Pod) -> str:
    """Of a container's environment: given, or a field of the pod, its address or its name."""
    if "value" in variable or "valueFrom" not in variable:
        return str(variable.get("value", ""))
    is_name = variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    return str(pod["metadata"]["name"]) if is_name else _HOST


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
