"""A real browser: Chromium without a window, spoken to by Chrome's DevTools Protocol over a pipe."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BROWSER = shutil.which("chromium")
"""None: there is none here. On Debian: ``apt-get install chromium``."""

_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
_WITHIN_S = 60


@dataclass
class Page:
    """What a browser shows.

    Attributes:
        said: What pages have written to the console, and what the browser has refused them.
    """

    _to: int
    _from: int
    said: list[str] = field(default_factory=list)
    _session: str | None = None
    _number: int = 0
    _rest: bytes = b""

    def open(self, address: str) -> None:
        """Loads a page; what it loads itself may still be under way."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState == 'complete'")

    def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"]["exception"].get("description", expression))
        return done["result"].get("value")

    def wait(self, expression: str) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + _WITHIN_S
        value = None
        while time.monotonic() < end:
            try:
                if value := self.js(expression):
                    return value
            except AssertionError:  # not there yet
                pass
            time.sleep(0.1)
        seen = self.js("document.body.innerText")
        raise AssertionError(f"{expression} is {value!r} after {_WITHIN_S} s; the page shows: {seen}")

    def resize(self, width: int, height: int) -> None:
        """Gives the window a size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def log_in(self, address: str, token: str) -> None:
        """Lets what is at an address know who looks at it, as Airflow does."""
        self.call("Network.setCookie", name="_token", value=token, url=address)

    def picture(self, image: Path) -> None:
        """A picture of the window."""
        image.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def call(self, method: str, **parameters: Any) -> Any:
        """What the browser answers to a command of its protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(
            self._to, json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def begin(self) -> None:
        """A tab of its own."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._from, 1 << 20)
            assert read, "the browser has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]

    def _note(self, event: dict[str, Any]) -> None:
        of = event.get("params", {})
        if event.get("method") == "Runtime.consoleAPICalled" and of["type"] in {"error", "warning"}:
            self.said.append(" ".join(str(part.get("value", part.get("description"))) for part in of["args"]))
        if event.get("method") == "Log.entryAdded" and of["entry"]["level"] in {"error", "warning"}:
            self.said.append(f"{of['entry']['text']} {of['entry'].get('url', '')}".strip())


def _above_4(descriptor: int) -> int:
    other = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 5)
    os.close(descriptor)
    return other


@contextmanager
def browser() -> Iterator[Page]:
    """A page of a browser, with a profile of its own, which ends with the context."""
    assert BROWSER is not None
    theirs_in, to, from_, theirs_out = (_above_4(end) for end in (*os.pipe(), *os.pipe()))

    def pipes() -> None:  # the browser reads from 3 and writes to 4
        os.dup2(theirs_in, 3)
        os.dup2(theirs_out, 4)

    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [BROWSER, *_OPTIONS, f"--user-data-dir={profile}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=pipes,  # noqa: PLW1509 - it calls the system and nothing else
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            page = Page(to, from_)
            page.begin()
            yield page
        finally:
            process.terminate()
            process.wait()
            os.close(to)
            os.close(from_)
