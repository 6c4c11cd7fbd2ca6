"""Files whose tests want the same server run in the same process, one after the other, beside all others.

Each process that runs tests starts a Spark, or a Kafka broker, for its first test that asks for one. Starting Spark
costs a minute of a processor until its code is warm: five processes with their own took a fifth of the whole run.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from pathlib import Path

_WANTS_SPARK = re.compile(r"^ *def \w+\((?:[^)]*\W)?spark\b|usefixtures\(\"spark\"\)", re.MULTILINE)


class OneProcessForAServer(LoadFileScheduling):
    """``--dist loadfile``, but for the files that share a server: they are one unit."""

    def _split_scope(self, nodeid: str) -> str:
        return server_of(self.config.rootpath, nodeid.partition("::")[0])


@cache
def server_of(root: Path, file: str) -> str:
    """What the tests of a file run with; of one that shares nothing its own name."""
    if file.startswith("tests/kafka/"):
        return "broker"
    if file.startswith("tests/hindstream/spark/") or _WANTS_SPARK.search((root / file).read_text(encoding="utf-8")):
        return "spark"
    return file
