"""Hadoop's YARN: a resource manager and one node, whose containers are processes of this machine."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from tests.hindstream.airflow.airflow_environ import free_port
from tests.kafka.java_runtime import executable
from tests.kafka.maven import build

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROJECT = Path(__file__).with_name("yarn-servers")
_SERVERS = "org.apache.hadoop.yarn.server"
_LOOKS = 240
_LOG = """log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.SimpleLayout
"""


@dataclass(frozen=True)
class Yarn:
    """A running YARN.

    Attributes:
        conf: The folder of its clients' configuration.
        port: Of the web server of its resource manager.
    """

    conf: Path
    port: int


@contextmanager
def yarn(folder: Path) -> Iterator[Yarn]:
    """With a resource manager of its own.

    Args:
        folder: For all that it has.
    """
    libraries, conf, port = build(_PROJECT) / "lib", folder / "conf", free_port()
    conf.mkdir()
    (conf / "yarn-site.xml").write_text(_document(_site(folder, port)))
    (conf / "core-site.xml").write_text(_document({"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(folder / "tmp")}))
    (conf / "log4j.properties").write_text(_LOG)
    opened = ["--add-opens", "java.base/java.lang=ALL-UNNAMED"]  # to its library of injections
    options = [*opened, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{conf}{os.pathsep}{libraries}/*"]
    with ExitStack() as started:
        for server in ("resourcemanager.ResourceManager", "nodemanager.NodeManager"):
            log = started.enter_context((folder / f"{server}.log").open("wb"))
            command = [executable(), *options, f"{_SERVERS}.{server}"]
            process = started.enter_context(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))
            started.callback(process.terminate)  # a node ends its containers
        _await(port, folder)
        yield Yarn(conf, port)


def _site(folder: Path, port: int) -> dict[str, str]:
    """Addresses and folders of this machine, and as many containers as are asked for."""
    manager = {"": free_port(), ".scheduler": free_port(), ".resource-tracker": free_port(), ".admin": free_port()}
    node = ["yarn.nodemanager.address", "yarn.nodemanager.localizer.address", "yarn.nodemanager.webapp.address"]
    return {
        **{f"yarn.resourcemanager{name}.address": f"127.0.0.1:{free}" for name, free in manager.items()},
        **{name: f"127.0.0.1:{free_port()}" for name in node},
        "yarn.resourcemanager.webapp.address": f"127.0.0.1:{port}",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.resource.memory-mb": "8192",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "yarn.scheduler.minimum-allocation-mb": "256",
        "yarn.scheduler.capacity.root.queues": "default",
        "yarn.scheduler.capacity.root.default.capacity": "100",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
    }


def _document(given: dict[str, str]) -> str:
    each = (f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in given.items())
    return f"<configuration>{''.join(each)}</configuration>"


def _await(port: int, folder: Path) -> None:
    """Until the resource manager has a node."""
    for _ in range(_LOOKS):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ws/v1/cluster/nodes") as answer:
                if b'"RUNNING"' in answer.read():
                    return
        except urllib.error.URLError:
            pass
        time.sleep(0.5)
    raise AssertionError("\n".join(log.read_text() for log in folder.glob("*.log")))
