"""A hundred recordings that every test run does again: ``sample.jsonl.gz`` beside this file, a line each.

They were recorded while tests of Apache Kafka ran, which has the Apache License 2.0; each names its test.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FILE = Path(__file__).with_name("sample.jsonl.gz")
SIZE = 100
_MOST_BYTES = 20_000


def read() -> list[bytes]:
    """The recordings."""
    return gzip.decompress(FILE.read_bytes()).splitlines()


def write(recordings: Iterable[tuple[str, bytes]]) -> None:
    """Makes it anew, with one driver of a test at most.

    Args:
        recordings: Of tests that agree and have records; each with the name of its test.
    """
    seen: set[str] = set()
    by_class: defaultdict[str, list[bytes]] = defaultdict(list)
    for test, text in recordings:
        if len(text) <= _MOST_BYTES and test not in seen:
            seen.add(test)
            by_class[test.partition("#")[0]].append(text)
    rounds = zip_longest(*(_spread(by_class[name]) for name in sorted(by_class)))
    chosen = [text for of_each in rounds for text in of_each if text is not None][:SIZE]
    lines = sorted((json.dumps(json.loads(text), separators=(",", ":")) for text in chosen), key=name_of)
    FILE.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def name_of(text: str | bytes) -> str:
    """The test of a recording."""
    name: str = json.loads(text)["test"]
    return name


def _spread(texts: list[bytes]) -> list[bytes]:
    """Some of a class, far from one another: neighbours differ in a parameter."""
    step = max(1, len(texts) // 8)
    return texts[::step]
