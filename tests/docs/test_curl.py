"""The curl of machines that have none, against a server of this process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs import curl
from tests.docs.blocks import RUNBOOKS

if TYPE_CHECKING:
    from collections.abc import Iterator


class Server(ThreadingHTTPServer):
    """Gives the codes it is told to, one a request, and remembers what it was asked."""

    codes: list[int]
    asked: list[tuple[str, str, str, str]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_PATCH(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        self.server.asked.append((self.path, self.headers["Authorization"], self.headers["Content-Type"], body))
        self.send_response(self.server.codes.pop(0))
        self.end_headers()
        self.wfile.write(b'{"said": "it"}')

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def typed(command: str) -> subprocess.CompletedProcess[str]:
    """A command of bash whose curl is ours."""
    function = f'curl() {{ "{sys.executable}" "{curl.__file__}" "$@"; }}\n'
    return subprocess.run(["bash", "-c", function + command], check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("codes", "returns", "error"),
    [([200], 0, ""), ([500, 200], 0, ""), ([409], 22, "curl: (22) The requested URL returned error: 409\n")],
)
def test_a_runbook_s_request(server: Server, codes: list[int], returns: int, error: str) -> None:
    server.codes = [*codes]
    body = json.dumps({"chosen_options": ["Reject"]})
    done = typed(
        f"TOKEN=t; AIRFLOW=http://127.0.0.1:{server.server_port}\n"
        'curl --fail-with-body -sS --retry 5 -X PATCH -H "Authorization: Bearer $TOKEN" -H "Content-Type: '
        f"application/json\" -d '{body}' $AIRFLOW/api/v2/details"
    )
    assert (done.returncode, done.stdout, done.stderr) == (returns, '{"said": "it"}', error)
    assert server.asked == [("/api/v2/details", "Bearer t", "application/json", body)] * len(codes)


def test_the_code_alone(server: Server) -> None:
    server.codes = [403]
    done = typed(
        "curl -sS -o /dev/null -w '%{http_code}\\n' --max-time 10 -X PATCH http://127.0.0.1:" + str(server.server_port)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "403\n", "")


def test_nobody_answers() -> None:
    done = typed("curl -sS -o /dev/null -w '%{http_code}\\n' --max-time 10 http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (7, "000\n")
    assert done.stderr.startswith("curl: (7) ")


def test_a_machine_without(tmp_path: Path) -> None:
    empty, folder = tmp_path / "empty", tmp_path / "folder"
    empty.mkdir()
    folder.mkdir()
    path = curl.path_with_curl(str(empty), folder)
    assert path == f"{folder}:{empty}"
    assert curl.path_with_curl(path, empty) == path
    done = subprocess.run([folder / "curl", "--frobnicate"], check=False, capture_output=True, text=True)
    assert done.returncode == 2


def test_it_knows_every_option_that_the_pages_use() -> None:
    calls = [line for page in RUNBOOKS.glob("*.md") for line in page.read_text().splitlines() if "$ curl " in line]
    known = Path(curl.__file__).read_text()
    options = {word for call in calls for word in call.split() if word.startswith("-") and not word.endswith("'")}
    assert options
    assert [option for option in options if f'add_argument("{option}"' not in known] == []
