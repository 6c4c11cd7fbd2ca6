"""Streams as Kafka passes records through them: one at a time, depth first, branches in the order of declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Record = tuple[Any, Any, int]
"""Key, value, timestamp."""


@dataclass
class Stream:
    """Forwards what it is sent, as ``process`` says, to its children."""

    process: Callable[[Record], Iterable[Record]] = lambda record: [record]
    children: list[Stream] = field(default_factory=list)
    sent: list[Record] = field(default_factory=list)

    def send(self, record: Record) -> None:
        self.sent.append(record)
        for result in self.process(record):
            for child in self.children:
                child.send(result)

    def then(self, process: Callable[[Record], Iterable[Record]]) -> Stream:
        child = Stream(process)
        self.children.append(child)
        return child

    def flat_map(self, of: Callable[[Any, Any], Iterable[tuple[Any, Any]]]) -> Stream:
        return self.then(lambda record: [(key, value, record[2]) for key, value in of(*record[:2])])

    def split(self, *predicates: Callable[[Any, Any], Any]) -> list[Stream]:
        """A stream for each predicate, and one for what none of them takes."""
        branches = [Stream() for _ in range(len(predicates) + 1)]

        def choose(record: Record) -> list[Record]:
            chosen = next((n for n, takes in enumerate(predicates) if takes(*record[:2])), len(predicates))
            branches[chosen].send(record)
            return []

        self.then(choose)
        return branches

    def merge(self, other: Stream) -> Stream:
        merged = Stream()
        self.children.append(merged)
        other.children.append(merged)
        return merged
