"""Random programs as jobs: in one slice with all memory, or in several with almost none, they write the same bytes.

``./dev campaign invariance --programs N [--seed N]`` tries new ones, and makes what differs small.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from statelib.commits.run.plan import NothingToDo
from tests.differential import functions
from tests.differential.generator import program_of
from tests.differential.shrinking import smallest
from tests.differential.topology import topology_of, types_of
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.settings.semantics import EndOfInput
    from tests.differential.program import Program

_TOLD_EVERY = 50
Written = dict[str, list[Any]]
State = dict[str, dict[str, list[tuple[bytes, bytes]]]]


def difference_of_bytes(program: Program) -> str | None:
    """Where a program writes other records or other state when it is cut; None: nowhere.

    How it is cut follows from the program, so a smaller one may be cut in another way.
    """
    rng = Random(f"bytes {len(program.records)} {len(program.steps)}")
    is_circle = any(stage[0].returning for stage in topology_of(program).stages)  # sealing is refused there
    settings: dict[str, Any] = {
        "partitions": rng.choice([1, 2, 3]),
        "end_of_input": "hold" if is_circle else rng.choice(["hold", "seal"]),
        "semantics": rng.choice(["kip", "kafka-4.3", "kafka-4.4"]),
        "on_processing_error": "quarantine" if any("fails" in step for step in program.steps) else "fail",
    }
    times = sorted({time for _, _, _, time in program.records})
    cuts = sorted(rng.sample(times, min(len(times), rng.choice([0, 1, 2, 3]))))
    if any("extractor" in step for step in program.steps):
        cuts = []  # a slice ends by the times before
    batches = rng.choice([1, 1, 2, 5])
    how = f"{settings}, cut at {cuts}, batches of {batches}"
    little = {"batch_records": batches, "memory_budget_bytes": 1}
    with tempfile.TemporaryDirectory() as folder:
        try:
            whole = _replayed(program, Path(folder, "whole"), [], **settings)
            cut = _replayed(program, Path(folder, "cut"), cuts, **little, **settings)
        except Exception as error:  # noqa: BLE001 - made small, as any other
            return f"{how}: {type(error).__name__}: {error}"
    return _difference(how, whole, cut)


def _replayed(
    program: Program,
    folder: Path,
    cuts: Sequence[int],
    *,
    partitions: int,
    end_of_input: EndOfInput,
    **settings: Any,
) -> tuple[Written, State]:
    """What is published in the end, by topic, and all state, by task and family."""
    topology = topology_of(program)
    pipeline = Pipeline(folder, topology, "app", **settings)
    for topic, types in types_of(program).items():
        rows = [(functions.read(program.keys, key), *rest) for name, key, *rest in program.records if name == topic]
        pipeline.archive(topic, rows, types, partitions)
    for until_ms in cuts:
        pipeline.run(until_ms)
    pipeline.run(end_of_input=end_of_input)
    assert isinstance(pipeline.run(), NothingToDo)
    sinks = {sink.topic for sub in topology.sub_topologies for sink in sub.all_sinks if not sink.internal}
    return {topic: pipeline.output_if_present(topic) for topic in sorted(sinks)}, pipeline.state()


def _difference(how: str, whole: tuple[Written, State], cut: tuple[Written, State]) -> str | None:
    for topic, records in whole[0].items():
        if cut[0][topic] != records:
            return f"{topic} differs ({how})\n  in one piece: {records}\n  cut:          {cut[0][topic]}"
    for task, families in whole[1].items():
        for family, rows in families.items():
            found = cut[1].get(task, {}).get(family)
            if found != rows:
                return f"{family} of {task} differs ({how})\n  in one piece: {rows}\n  cut:          {found}"
    return None


def _alike(fails: bool, program: Program) -> str | None:
    """As `difference_of_bytes`, if the program fails, or if it does not."""
    found = difference_of_bytes(program)
    return found if found is not None and ("Error: " in found) == fails else None


def main(arguments: Sequence[str]) -> int:
    """Runs programs of new seeds; 1 if any differs."""
    options = argparse.ArgumentParser(allow_abbrev=False, prog="invariance", description=__doc__)
    options.add_argument("--programs", type=int, default=500, help="how many")
    options.add_argument("--seed", type=int, help="of the first one, the others follow; if left out, a new one")
    given = options.parse_args(arguments)
    first = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    print(f"programs {first} to {first + given.programs - 1}", flush=True)
    different: list[int] = []
    for seed in range(first, first + given.programs):
        program = program_of(seed)
        found = difference_of_bytes(program)
        if found is not None:
            different.append(seed)
            program, found = smallest(program, found, partial(_alike, "Error: " in found))
            print(f"\nprogram {seed}: {found}\n{program.as_json()}", flush=True)
        if (seed - first + 1) % _TOLD_EVERY == 0:
            print(f"{seed - first + 1} programs, {len(different)} differ", flush=True)
    print(f"{given.programs} programs, {len(different)} differ: {different}", flush=True)
    return 1 if different else 0
