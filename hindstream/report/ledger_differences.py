"""What two jobs dropped, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.console.differences import side_name
from hindstream.console.numbers import count_text, percent_text
from hindstream.report.accounts import ORDER, account
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.comparison.ledgers import LedgerDifferences, SampleLedger

LOST = ("dropped", "failed")


@dataclass(frozen=True, slots=True)
class Dropped:
    """Records that a node dropped for one reason.

    Attributes:
        node: What B calls it, else A.
        account: The reason: see `hindstream.report.accounts.Account.label`.
        meaning: The same in a sentence.
        a: How many in A.
        b: How many in B.
    """

    node: str
    account: str
    meaning: str
    a: int
    b: int


def dropped(found: LedgerDifferences) -> list[Dropped]:
    """What either dropped, by node; what differs first."""
    places = {name: place for place, name in enumerate(ORDER)}
    rows = []
    for node in found.nodes:
        for name in sorted(node.accounts, key=lambda name: places.get(name, len(places))):
            kind = account(name)
            a, b = node.accounts[name]
            if kind.fate in LOST and (a or b):
                rows.append(Dropped(node.name, kind.label, kind.meaning, a, b))
    return sorted(rows, key=lambda row: row.a == row.b)


def ledger_sentences(found: LedgerDifferences) -> Iterator[str]:
    """How many records both took up, and which of them B dropped more or fewer of."""
    since = "From the beginning" if found.since is None else f"Since {side_name(found.since)}"
    if found.records_a == found.records_b:
        yield f"{since}, both took up {counted(found.records_a, 'record')}."
    else:
        yield f"{since}, A took up {counted(found.records_a, 'record')}, and B {count_text(found.records_b)}."
    totals: dict[str, int] = {}
    for row in dropped(found):
        totals[row.account] = totals.get(row.account, 0) + row.b - row.a
    changes = [
        f"{count_text(abs(change))} {'more' if change > 0 else 'fewer'} as {name}"
        for name, change in totals.items()
        if change
    ]
    if found.sample is not None:
        yield from _sample_sentences(found.sample)
        if not changes:
            return
    yield f"B dropped {', '.join(changes)}." if changes else "Both dropped as many, for the same reasons."
    if found.unknown:
        yield f"Not counted: {', '.join(map(side_name, found.unknown))}, whose ledgers have not been kept."


def _sample_sentences(sample: SampleLedger) -> Iterator[str]:
    """What a sample of the keys has spared, and what is not told of it."""
    all_records = sample.taken + sample.for_time + sample.left_out
    yield (
        f"{sample.nodes} of {counted(sample.all_nodes, 'node')} took the sample:"
        f" {counted(sample.taken, 'record')} of its keys, and {count_text(sample.for_time)} of others that move time."
        f" This spared them {percent_text(sample.left_out, all_records)} of {counted(all_records, 'record')}."
    )
    yield "What these nodes dropped is not compared: the job's ledger has all keys."


def dropped_lines(found: LedgerDifferences) -> Iterator[str]:
    """Where both dropped another number of records."""
    rows = [row for row in dropped(found) if row.a != row.b]
    if rows:
        yield "Dropped, by node"
    for row in rows:
        yield f"  {row.node}: {row.account} {count_text(row.a)} in A, {count_text(row.b)} in B"
