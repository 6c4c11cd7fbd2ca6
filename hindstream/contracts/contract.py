"""Contracts as users name them: a file, and which topic of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.contracts.document import read_contract
from hindstream.contracts.rules import Expected, LeftOut, expected
from statelib.errors.counted import counted
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.job.job import Expectation


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract as it was read.

    Attributes:
        file: Where.
        topics: What it expects, by the objects of its schema.
        left_out: What is no part of one of these, and no expectation says.
    """

    file: Path
    topics: tuple[Expected, ...]
    left_out: tuple[LeftOut, ...]


def load_contract(file: Path, *, at: str | None = None) -> Contract:
    """Reads a contract.

    Args:
        file: The file.
        at: See `hindstream.contracts.rules.expected`.

    Raises:
        ConfigurationError: See `hindstream.contracts.document.read_contract`.
    """
    document, unknown = read_contract(file)
    left_out = [LeftOut(place, "the standard knows no such key") for place in unknown]
    left_out += [
        LeftOut(
            f"slaProperties[{sla.property or n}]",
            "it is a service level: a check sees the records of a slice, and not when they came",
            is_rule=False,
        )
        for n, sla in enumerate(document.slaProperties or ())
    ]
    return Contract(file, tuple(expected(each, at=at) for each in document.schema_ or ()), tuple(left_out))


def contract(
    file: str | Path, schema: str | None = None, *, at: str | None = None, without: Sequence[str] = ()
) -> tuple[Expectation, ...]:
    """What a data contract of the Open Data Contract Standard expects of a topic, for `Job.expectations`.

    ``expectations={"orders": contract("orders.odcs.yaml")}``. Nothing of it is left out in silence: a rule that no
    expectation says is refused, unless ``without`` names it. Text for people, and times of delivery, are no rules.

    Args:
        file: The contract; a relative path begins at the file that calls this.
        schema: Which object of its schema; None: it has one.
        at: The column whose fields its properties are; empty: they are columns of the archive. None: they are, if all
            have names of such columns; else they are fields of ``value``.
        without: Places of rules that are to be left out, as the error names them.

    Raises:
        ConfigurationError: There is no such contract, object or rule; a rule cannot be an expectation; or the extra
            ``contracts`` is not installed.
    """
    beside = sys._getframe(1).f_globals.get("__file__")  # noqa: SLF001 - of whoever calls
    path = Path(beside).parent / file if beside is not None else Path(file)
    found = load_contract(path, at=at)
    topic = chosen(found, schema)
    rules = [each for each in (*found.left_out, *topic.left_out) if each.is_rule]
    for place in without:
        if place not in {each.place for each in rules}:
            step = did_you_mean(place, [each.place for each in rules], "those that cannot be checked are")
            raise ConfigurationError(f"the contract has no rule {place} to leave out", file=path, next_step=step)
    if refused := [each for each in rules if each.place not in without]:
        told = "; ".join(f"{each.place}: {each.why}" for each in refused)
        what = f"{counted(len(refused), 'rule')} of the contract cannot be checked: {told}"
        names = ", ".join(repr(each.place) for each in refused)
        step = f"change the contract, or leave them out in so many words: without=[{names}]"
        raise ConfigurationError(what, file=path, next_step=step)
    return tuple(topic.expectations)


def chosen(found: Contract, schema: str | None) -> Expected:
    """The object of a contract's schema that is meant; None: its only one.

    Raises:
        ConfigurationError: It has no such object, or several.
    """
    names = [name for topic in found.topics for name in (topic.name, topic.topic)]
    meant = [topic for topic in found.topics if schema in {None, topic.name, topic.topic}]
    if len(meant) != 1:
        what = f"the contract has {counted(len(found.topics), 'object')} in its schema"
        if schema is not None:
            what = f"the contract has no object {schema} in its schema"
        step = did_you_mean(schema or "", dict.fromkeys(names), "name one with schema=, of")
        raise ConfigurationError(what, file=found.file, next_step=step)
    return meant[0]
