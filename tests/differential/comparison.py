"""Runs a program on both sides, and finds the smallest program that still differs."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.differential import shrinking
from tests.differential.hindstream import in_batches, in_slices
from tests.differential.kafka import Refused, VersionsDiffer, without_extractors
from tests.differential.naming import description_of
from tests.differential.topology import topology_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.settings.semantics import Semantics
    from tests.differential.kafka import Answer, Outputs, Runs
    from tests.differential.program import Program, Step


@dataclass(frozen=True)
class Difference:
    """Where both sides differ.

    Attributes:
        program: The program.
        how: How it was run here.
        topic: The sink's topic.
        kafka: What Kafka Streams writes to it; None: Kafka Streams does not run the program.
        here: What is written here; a text: the error.
    """

    program: Program
    how: str
    topic: str
    kafka: Any
    here: Any

    def __str__(self) -> str:
        steps = "\n".join(f"  {number}: {step}" for number, step in enumerate(self.program.steps))
        records = "\n".join(f"  {record}" for record in self.program.records)
        return (
            f"{self.topic} differs ({self.how})\n  Kafka Streams: {self.kafka}\n  here:          {self.here}\n"
            f"steps\n{steps}\nrecords\n{records}\nas data\n{self.program.as_json()}"
        )


def difference(program: Program, kafka: Runs, *, ways: int = 2, by_slices: bool = False) -> Difference | None:
    """What differs first, if anything does.

    Args:
        program: The program.
        kafka: Runs it, too.
        ways: In how many ways it is cut into batches here.
        by_slices: Whether it is run as a job as well, in files.
    """
    answer = _answer(program, kafka)
    if isinstance(answer, Difference):
        return answer
    expected, found = answer.outputs, _difference_of_text(program, answer.describe)
    if found is not None:
        return found
    is_circle = any(stage[0].returning for stage in topology_of(program).stages)
    if is_circle or any("extractor" in step for step in program.steps):
        return _difference_in_slices(program, expected, kafka.semantics)
    for number in range(ways):
        rng = Random(f"{number} {len(program.records)}")
        cuts = _cuts(rng, len(program.records)) if number else []
        flushed = bool(number) and rng.random() < 0.5
        semantics: Semantics = "kip" if number % 2 and _is_the_same_in_both(program) else kafka.semantics
        how = f"{semantics}, batches of {cuts} and the rest{', each flushed' if flushed else ''}"
        found = _differs(
            program, how, expected, partial(in_batches, program, cuts, flushed=flushed, semantics=semantics)
        )
        if found is not None:
            return found
    found = None if _is_the_same_in_both(program) else _difference_of_batches(program)
    if found is None and by_slices:
        cuts = _cuts(Random("slices"), len(program.records))[:1]
        with tempfile.TemporaryDirectory() as folder:
            return _differs(
                program, f"slices of {cuts} and the rest", expected,
                lambda: in_slices(program, Path(folder), cuts, batch_records=3, semantics=kafka.semantics),
            )  # fmt: skip
    return found


def _answer(program: Program, kafka: Runs) -> Answer | Difference:
    """What Kafka Streams makes of a program; a difference: it does not run it, or not in one way."""
    try:
        return kafka.run(program)
    except Refused as refused:
        return Difference(program, "", "", str(refused), None)
    except VersionsDiffer as versions:
        return Difference(program, "versions of Kafka Streams", "", str(versions), None)


def _difference_of_text(program: Program, expected: str) -> Difference | None:
    try:
        text = topology_of(program).describe()
    except Exception as error:  # noqa: BLE001 - made small, as any other
        text = f"{type(error).__name__}: {error}"
    if without_extractors(text) == expected:
        return None
    return Difference(program, "described", "the topology's text", expected, text)


def _difference_of_batches(program: Program) -> Difference | None:
    """How what the KIPs promise, which Kafka Streams does not do, depends on batches: in its place is one batch."""
    cuts = _cuts(Random("kip"), len(program.records))
    whole = in_batches(program, [], flushed=False, semantics="kip")
    run = partial(in_batches, program, cuts, flushed=True, semantics="kip")
    return _differs(program, f"kip, batches of {cuts} and the rest, each flushed, beside one", whole, run)


def _difference_in_slices(program: Program, expected: Outputs, semantics: Semantics) -> Difference | None:
    """The same in jobs of one slice and of several: where repartition topics form a circle, or times are extracted."""
    for cuts, batch_records in ([], 100), (_cuts(Random("circle"), len(program.records)), 2):
        with tempfile.TemporaryDirectory() as folder:
            run = partial(in_slices, program, Path(folder), cuts, batch_records=batch_records, semantics=semantics)
            found = _differs(program, f"slices of {cuts} and the rest", expected, run)
        if found is not None:
            return found
    return None


def difference_of_names(steps: Sequence[Step], kafka: Runs) -> str | None:
    """How the description of a program of names differs, as lines of both; None: it does not, or Kafka refuses it."""
    for optimization in ("none", "all"):
        with suppress(Refused):
            expected = kafka.describe(steps, optimization).splitlines()
            here = description_of(steps, optimization).splitlines()
            if expected != here:
                lines = unified_diff(expected, here, "Kafka Streams", "here", lineterm="")
                return "\n".join([f"{json.dumps(steps)} ({optimization})", *lines])
    return None


def _is_the_same_in_both(program: Program) -> bool:
    """Whether what is shipped and what the KIPs promise is the same (``docs/semantics.md``)."""
    return not any(
        step.get("retention") is not None
        or step.get("own", {}).get("kind") == "versioned"
        or step["op"] in {"suppress", "suppress_windows", "cogroup", "cogroup_windowed"}
        or step.get("final")
        or (step["op"] == "windowed" and not _is_told_as_a_stream(program, number, step))
        or (step["op"] == "aggregate" and step["function"] != "reduce")  # what the first update replaces
        or (step["op"] == "stream_join" and (step["how"] != "inner" or program.optimization != "none"))
        for number, step in enumerate(program.steps)
    )


def _is_told_as_a_stream(program: Program, number: int, step: Step) -> bool:
    """Whether nothing asks what the first update of a time window replaces."""
    told = all(other["op"] == "to_stream" for other in program.steps if other.get("of") == number)
    return told and step["windows"]["kind"] == "time"


def smallest(found: Difference, kafka: Runs) -> Difference:
    """A difference of which nothing can be left out."""

    def alike(program: Program) -> Difference | None:
        less = difference(program, kafka, ways=3)
        return less if less is not None and _kind(less) == _kind(found) else None

    return shrinking.smallest(found.program, found, alike)[1]


def _kind(found: Difference) -> str | None:
    """That of an error here; nothing: both have an answer; none: Kafka Streams refuses it."""
    if found.here is None:
        return None
    return str(found.here)[:60] if isinstance(found.here, str) else ""


def _differs(program: Program, how: str, expected: Outputs, run: Any) -> Difference | None:
    try:
        outputs = run()
    except Exception as error:  # noqa: BLE001 - made small, as any other
        return Difference(program, how, "", expected, f"{type(error).__name__}: {error}")
    for topic, rows in expected.items():
        if outputs.get(topic, []) != rows:
            return Difference(program, how, topic, rows, outputs.get(topic, []))
    return None


def _cuts(rng: Random, count: int) -> list[int]:
    return [rng.randint(1, 4) for _ in range(count // 2)]
