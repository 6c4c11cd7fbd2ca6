"""Programs that have one thing less, to find the smallest that still shows something."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tests.differential.program import Program, Step

    Found = TypeVar("Found")

_MOST_TRIES = 400


def smallest(program: Program, found: Found, find: Callable[[Program], Found | None]) -> tuple[Program, Found]:
    """A program of which nothing can be left out, and what it shows.

    Args:
        program: Shows something.
        found: What it shows.
        find: What a program shows; None: nothing, or something else.
    """
    tries = 0
    while True:
        for one in smaller(program):
            tries += 1
            if tries > _MOST_TRIES:
                return program, found
            with suppress(Exception):  # what is left of the program is none
                less = find(one)
                if less is not None:
                    program, found = one, less
                    break
        else:
            return program, found


def smaller(program: Program) -> list[Program]:
    """Programs that have one thing less."""
    fewer_records = [
        replace(program, records=program.records[:number] + program.records[number + 1 :])
        for number in reversed(range(len(program.records)))
    ]
    return [*_fewer_steps(program), *fewer_records]


def _fewer_steps(program: Program) -> list[Program]:
    """Without a step that nothing is made of; or with one passed over: what is made of it is made of its parent."""
    used = {step[which] for step in program.steps for which in ("of", "with") if which in step}
    programs = []
    for number in reversed(range(len(program.steps))):
        step = program.steps[number]
        if number not in used:
            if step["op"] not in {"stream", "table", "global_table"} or not any(
                row[0] == step["topic"] for row in program.records
            ):
                programs.append(_without(program, number, None))
        else:
            programs.extend(_without(program, number, step[which]) for which in ("of", "with") if which in step)
        if "store" in step and "retention" not in step:
            bare = {name: item for name, item in step.items() if name != "store"}
            programs.append(replace(program, steps=(*program.steps[:number], bare, *program.steps[number + 1 :])))
    return programs


def _without(program: Program, number: int, instead: int | None) -> Program:
    def moved(step: Step) -> Step:
        new = dict(step)
        for which in ("of", "with"):
            if which in step:
                of = instead if step[which] == number and instead is not None else step[which]
                new[which] = of - (of > number)
        return new

    steps = [moved(step) for at, step in enumerate(program.steps) if at != number]
    return replace(program, steps=tuple(steps))
