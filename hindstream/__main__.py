"""``hindstream``, and ``python -m hindstream``, which is the command line whatever is on the path."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from hindstream.garbage import collect_seldom
from hindstream.session.client import run_in_session


def main() -> None:
    """Runs the command line, in the session if there is one.

    Modules are looked for in the current directory first, as with ``python -m hindstream``: a job may be
    ``PACKAGE.MODULE:NAME``.
    """
    with suppress(OSError):  # the current directory has been deleted
        if not sys.flags.safe_path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
    code = run_in_session()
    if code is not None:
        sys.exit(code)
    collect_seldom()
    from hindstream.cli.main import main as command  # noqa: PLC0415 - typer, which a session has

    command()


if __name__ == "__main__":
    main()
