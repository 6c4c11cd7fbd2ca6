"""`docker-compose.yml` and its scripts, as far as they can be tried without Docker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.campaigns import kafka_versions
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCKER = ROOT / "docker"
TEXT = (ROOT / "docker-compose.yml").read_text()
STACK = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = STACK["services"]
ONCE = {name for name, service in SERVICES.items() if service.get("restart") == "no"}


def script(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, DOCKER / name, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_says_whether_it_is_well(name: str) -> None:
    assert ("healthcheck" in SERVICES[name]) == (name not in ONCE)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_until_those_that_it_needs_are_well_or_done(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        assert how["condition"] == ("service_completed_successfully" if needed in ONCE else "service_healthy")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_listens_on_this_machine_alone(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_mounts_is_there(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source = volume.split(":")[0]
        assert (ROOT / source).exists() if source.startswith("./") else source in STACK["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_is_in_the_file(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        if re.search("PASSWORD|SECRET|KEY|CONN", variable):
            assert re.search("_(FILE|CMD)$", variable), variable
            assert "/run/stack/" in value


def test_images_have_versions() -> None:
    images = {service["image"] for service in SERVICES.values()}
    assert all(re.search(r":(\d+[.\d]*|local)$", image) for image in images), images
    assert "latest" not in TEXT + (DOCKER / "Dockerfile").read_text()


def test_versions_are_those_of_the_tests() -> None:
    assert SERVICES["kafka"]["image"].split(":")[1] in {row.kafka for row in kafka_versions.MATRIX}
    registry = (ROOT / "tests" / "kafka" / "registry.py").read_text()
    assert f"apicurio-registry-app:{SERVICES['schema-registry']['image'].split(':')[1]}:" in registry


def test_secrets_are_made_once_and_for_nobody_else(tmp_path: Path) -> None:
    assert script("make_secrets.py", tmp_path).returncode == 0
    made = {file.name: file.read_text() for file in tmp_path.iterdir()}
    named = set(re.findall(r"/run/stack/([\w.-]+)", TEXT + (DOCKER / "entrypoint").read_text()))
    assert named <= set(made)
    assert {oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {"0o600"}
    assert len(set(made.values())) == len(made)
    assert made["postgres"] in made["airflow-database"]
    assert json.loads(made["airflow-passwords.json"]) == {"admin": made["airflow-admin"]}
    (identity,) = json.loads(made["s3.json"])["identities"]
    assert identity["credentials"] == [{"accessKey": made["s3-access-key"], "secretKey": made["s3-secret-key"]}]

    (tmp_path / "airflow-jwt").unlink()  # as if it had been killed before that
    assert script("make_secrets.py", tmp_path).returncode == 0
    again = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert again.pop("airflow-jwt") != made.pop("airflow-jwt")
    assert again == made


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 503)
        self.end_headers()
        self.wfile.write(b'{"scheduler": {"status": "healthy"}, "triggerer": {"status": "unhealthy"}}')

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_health_is_what_the_server_says(server: str) -> None:
    assert script("healthy.py", f"{server}/health").returncode == 0
    assert script("healthy.py", f"{server}/health", "scheduler").returncode == 0
    sick = script("healthy.py", f"{server}/health", "scheduler", "triggerer")
    assert (sick.returncode, sick.stderr.strip()) == (1, "not healthy: triggerer")
    assert script("healthy.py", f"{server}/elsewhere").returncode == 1
    assert script("healthy.py", "http://127.0.0.1:1/").returncode == 1


def test_the_settings_are_valid() -> None:
    check = "from statelib.settings.settings import load_settings; print(load_settings({}).warehouse)"
    environ = {"HINDSTREAM_CONFIG": str(DOCKER / "hindstream.toml"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", check], env=environ, cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "s3://lake/warehouse"


def test_the_image_leaves_out_what_a_build_does_not_need() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} >= {"dev", "docker", "requirements*.lock", "statelib"}
