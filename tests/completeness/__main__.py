"""Draws docs/completeness.md; with jars, takes the methods of Kafka Streams from them first."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.completeness.kafka_api import FILE, api_of, read_api
from tests.completeness.page import PAGE, page


def main() -> None:
    """See the package's docstring."""
    jars = [Path(name) for name in sys.argv[1:]]
    if jars:
        FILE.write_text(api_of(jars).since(read_api()).text(), encoding="utf-8")
    PAGE.write_text(page(read_api()), encoding="utf-8")


if __name__ == "__main__":
    main()
