"""What is answered for a method of Kafka Streams."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Status = Literal["works", "differs", "refused", "missing"]
WHOLE = "*"
"""Stands for all methods of a class for which one answer is enough."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One row of the page.

    Attributes:
        status: ``works``: the same call with the same effect; ``differs``: there is one, and the text says how it
            differs; ``refused``: there is none, and the text says why; ``missing``: there is none yet.
        text: Markdown, for the page.
        name: Of what there is, within the class; None: Kafka's name in snake case; ``""``: nothing to look up.
        kip: The number of the KIP that added the method; None: that of its class, if it has one.
    """

    status: Status
    text: str = ""
    name: str | None = None
    kip: int | None = None


def works(name: str | None = None, kip: int | None = None) -> Answer:
    """It works: under its own name in snake case, or under another one."""
    return Answer("works", "", name, kip)


def differs(text: str, name: str | None = None, kip: int | None = None) -> Answer:
    """It works in another way; ``name``: of what there is in its place, ``""`` if that is no attribute of the class."""
    return Answer("differs", text, name, kip)


def refused(text: str = "", kip: int | None = None) -> Answer:
    """There is none, for a reason. No text: the reason, and what to use in its place, is what our class says."""
    return Answer("refused", text, "", kip)


def missing(text: str = "", kip: int | None = None) -> Answer:
    """There is none yet; the text says how far one comes without. No text: that is what our class says."""
    return Answer("missing", text, "", kip)


@dataclass(frozen=True, slots=True)
class ClassAnswers:
    """The answers for one class of Kafka's.

    Attributes:
        name: Its name below ``org.apache.kafka.streams``, with the package: ``kstream.KStream``.
        ours: The name of our class, in `hindstream` or `hindstream.testing`; None: there is none.
        text: A sentence, for the page.
        answers: By methods. A key is one or several names with commas between them, ``filter, filterNot``, each with
            the parameter types that choose overloads: ``stream(Collection|Pattern)`` are those that have one of these
            types. An overload takes the most special answer. ``label: name`` is a row beside the others: ``on tables
            of windows: join``.
        kip: The number of the KIP that added the class.
    """

    name: str
    ours: str | None
    text: str
    answers: Mapping[str, Answer] = field(default_factory=dict)
    kip: int | None = None

    @property
    def simple_name(self) -> str:
        """Without its package, and as Java programs write it."""
        return self.name.rpartition(".")[2].replace("$", ".")

    def rows(self) -> list[tuple[Selector, Answer]]:
        """Each key by itself."""
        found = []
        for keys, answer in self.answers.items():
            with_kip = answer if answer.kip else replace(answer, kip=self.kip)
            label, _, names = keys.rpartition(": ")
            found += [(Selector.of(key, label), with_kip) for key in re.split(r",\s*(?![^(]*\))", names)]
        return found


@dataclass(frozen=True, slots=True)
class Selector:
    """Which overloads of a method a row is about."""

    method: str
    types: frozenset[str] = frozenset()
    label: str = ""

    @classmethod
    def of(cls, key: str, label: str) -> Selector:
        """Of ``stream(Collection|Pattern)``."""
        method, _, types = key.removesuffix(")").partition("(")
        return cls(method, frozenset(types.split("|")) if types else frozenset(), label)


def snake(name: str) -> str:
    """A name of Java's as Python writes it."""
    spelt = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    return {"as": "as_", "with": "with_", "print": "print", "map": "map"}.get(spelt, spelt)
