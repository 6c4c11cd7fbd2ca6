"""Airflow's API server alone, over a home that has a history."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.hindstream.airflow.airflow_environ import AIRFLOW, airflow_environ

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


GUARD = "tests.hindstream.airflow.page.guarded"
USERS = ("admin", "viewer")
"""Their roles are called like them."""


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@dataclass
class Answer:
    """What a server has answered."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass
class ApiServer:
    """A running one.

    Attributes:
        address: Its own.
        log: What it says.
        tokens: Of each user.
    """

    address: str
    log: Path
    tokens: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, user: str | None = "viewer", method: str = "GET", body: bytes | None = None) -> Answer:
        """What it answers; a redirection is not followed. ``user``: None, nobody has logged in."""
        request = urllib.request.Request(f"{self.address}{path}", method=method, data=body)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if user is not None:
            request.add_header("Authorization", f"Bearer {self.tokens[user]}")
        try:
            with urllib.request.build_opener(_Stay).open(request, timeout=60) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read().decode())


def _token(server: ApiServer, user: str) -> str:
    login = json.dumps({"username": user, "password": f"{user}'s password"})
    return str(json.loads(server.get("/auth/token", None, "POST", login.encode()).text)["access_token"])


@contextmanager
def api_server(home: Path, **environ: str) -> Iterator[ApiServer]:
    """A server of this home, which ends with the context."""
    passwords = home / "passwords.json"
    passwords.write_text(json.dumps({user: f"{user}'s password" for user in USERS}))
    given = airflow_environ(home) | {
        "AIRFLOW__CORE__AUTH_MANAGER": f"{GUARD}.GuardedAuthManager",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{user}" for user in USERS),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        **environ,
    }
    log = home / "api-server.log"
    with log.open("wb") as output:
        process = subprocess.Popen([AIRFLOW, "api-server"], env=given, stdout=output, stderr=output)
        server = ApiServer(given["AIRFLOW"], log)
        try:
            while not server.tokens:
                assert process.poll() is None, log.read_text()
                with suppress(OSError):  # it does not answer yet
                    server.tokens = {user: _token(server, user) for user in USERS}
                time.sleep(0.3)
            yield server
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
