"""``python -m hindstream`` is the command line, whatever is on the path."""

from __future__ import annotations

from hindstream.cli.main import main

if __name__ == "__main__":
    main()
