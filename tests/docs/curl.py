"""What the documentation's calls of ``curl`` do, for a machine that has none: the options that they use, no others."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

_RETRIED = {408, 429, 500, 502, 503, 504}
"""What curl calls transient."""


def path_with_curl(path: str, folder: Path) -> str:
    """A ``PATH`` on which there is a curl: the machine's own, or else this one, put into ``folder``."""
    if shutil.which("curl", path=path):
        return path
    program = folder / "curl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return f"{folder}:{path}"


def main() -> int:
    """One request; curl's exit codes 7 (no answer) and 22 (an answer that says no)."""
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("--fail-with-body", action="store_true")
    parser.add_argument("-sS", action="store_true", dest="shows_errors_only")
    parser.add_argument("--retry", type=int, default=0)
    parser.add_argument("--max-time", type=float)
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="data")
    parser.add_argument("-o", dest="output", type=Path)
    parser.add_argument("-w", dest="format", default="")
    parser.add_argument("url")
    options = parser.parse_args()
    request = urllib.request.Request(
        options.url, data=options.data.encode() if options.data else None, method=options.method
    )
    for header in options.headers:
        name, _, value = header.partition(": ")
        request.add_header(name, value)
    try:
        code, body = _answer(request, options.retry, options.max_time)
    except (urllib.error.URLError, TimeoutError) as error:
        print(options.format.replace("%{http_code}", "000").replace("\\n", "\n"), end="")
        print(f"curl: (7) {error}", file=sys.stderr)
        return 7
    if options.output:
        options.output.write_bytes(body)
    else:
        sys.stdout.buffer.write(body)
    print(options.format.replace("%{http_code}", str(code)).replace("\\n", "\n"), end="")
    if options.fail_with_body and code >= 400:
        print(f"curl: (22) The requested URL returned error: {code}", file=sys.stderr)
        return 22
    return 0


def _answer(request: urllib.request.Request, retries: int, max_time: float | None) -> tuple[int, bytes]:
    for tried in range(retries + 1):
        try:
            with urllib.request.urlopen(request, timeout=max_time) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            if error.code not in _RETRIED or tried == retries:
                return error.code, error.read()
        time.sleep(2**tried)
    raise AssertionError("each try has returned or gone on to the next")


if __name__ == "__main__":
    sys.exit(main())
