"""The page of results, ``RESULTS.md`` beside this file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.peers.replay import Outcome
    from tests.peers.tracing import Ran

FILE = Path(__file__).with_name("RESULTS.md")
_HEAD = """# Kafka Streams' own tests, done here

`./dev campaign peers --write` makes this page. It runs the test classes that Kafka publishes, in Java, with an agent
that records what their `TopologyTestDriver` do: the calls of the DSL, the functions of the test as tables of what they
answered, the records piped in and sent. The same calls then build the topology here, and the same records go in. Every
record that comes out, or reaches a processor of the test, must be the same: key, value, timestamp, headers and order.
So must the text of `describe()`.

The classes are those of the jars of Kafka 4.3.0 and, where it publishes none of that name, of 3.9.1: the tests of joins
that later releases keep to themselves. All of them run with the library of 4.3.0. `--kafka 4.4.0` runs them with that
of 4.4.0, which has published no tests and has lost internals that 361 of these use: 1,344 cases, of which 882 agree
record for record and 346 by their text, 116 cannot be expressed, and none differs (November 2026).

A *case* is a driver, or a topology that a test only describes. Each is run in two ways, record by record and in one
batch, with `kafka-4.3`; `--by-slices` adds a job with a slice for each record. Drivers run without record caches, of
which there is none here. Every test run does [a hundred cases](test_peers.py) again, without Java.
"""


def write(ran: Sequence[Ran], outcomes: Sequence[Outcome]) -> None:
    """Makes it anew.

    Args:
        ran: The tests.
        outcomes: What became of their cases.
    """
    kinds = Counter(one.kind for one in outcomes)
    compared = sum(one.compared for one in outcomes)
    summary = [
        ("test classes", f"{len({_class(one.name) for one in ran}):,}"),
        ("tests", f"{len(ran):,}"),
        ("of which make no driver and no topology", f"{sum(not one.drivers for one in ran):,}"),
        ("cases", f"{len(outcomes):,}"),
        ("agree, records compared", f"{kinds['agrees']:,}"),
        ("agree, only a text to compare", f"{kinds['described']:,}"),
        ("cannot be expressed here", f"{kinds['not expressed']:,}"),
        ("differ", f"{kinds['differs']:,}"),
        ("records compared", f"{compared:,}"),
    ]
    reasons = Counter(one.reason for one in outcomes if one.kind == "not expressed")
    differ = [(f"`{one.test}`", one.reason.partition("\n")[0]) for one in outcomes if one.kind == "differs"]
    parts = [
        _HEAD,
        _table(("", ""), summary),
        "## Not expressed\n",
        _table(("why", "cases"), [(why, str(count)) for why, count in sorted(reasons.items(), key=_by_count)]),
        *(["## Different\n", _table(("test", "what"), differ)] if differ else []),
        "## By class\n",
        _table(("class", "agree", "described", "not expressed", "differ"), list(_by_class(outcomes))),
    ]
    FILE.write_text("\n".join(parts))


def _by_count(row: tuple[str, int]) -> tuple[int, str]:
    return -row[1], row[0]


def _by_class(outcomes: Sequence[Outcome]) -> Iterable[tuple[str, ...]]:
    kinds = ("agrees", "described", "not expressed", "differs")
    counts: Counter[tuple[str, str]] = Counter((_class(one.test), one.kind) for one in outcomes)
    for name in sorted({name for name, _ in counts}):
        yield (f"`{name.removeprefix('org.apache.kafka.')}`", *(str(counts[name, kind] or "") for kind in kinds))


def _class(test: str) -> str:
    return test.partition("#")[0]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)
