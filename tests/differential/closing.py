"""Small programs in which windows close: a topic, an aggregation that forwards final results, and an end.

Some have times so long that the segments of Kafka Streams' stores matter, and leaps of time that make it lose results.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from tests.differential.program import Program

if TYPE_CHECKING:
    from tests.differential.program import Row, Step

_KEYS = ("a", "b", "ab", None)
_STEPS_OF_TIME = (0, 0, 1, 1, 2, 5, 6, 8, 12, 20, 23, 60, 200)


def program_of(seed: int, *, records: int = 25, failing: float = 0.1) -> Program:
    """The program of a seed.

    Args:
        seed: Any number.
        records: The most.
        failing: How many programs have functions that fail for some records.
    """
    rng = Random(f"closing {seed}")
    scale = rng.choice([1, 1, 1, 10_000, 60_000])
    steps: list[Step] = [{"op": "stream", "topic": "t0"}]
    if rng.random() < 0.3:
        steps.append({"op": "filter", "of": 0, "modulus": 2, "rest": 0})
    function = rng.choice(["count", "reduce", "aggregate"])
    windows = _windows(rng, scale)
    steps.append({"op": "windowed", "of": len(steps) - 1, "windows": windows, "function": function, "final": True})
    if rng.random() < 0.3:
        length = windows.get("gap", windows.get("size", windows.get("difference", 0)))
        steps[-1] |= {"kept": (length + windows["grace"]) * rng.choice([1, 2, 3])}
    if rng.random() < 0.3:
        again = "count" if function == "count" else "reduce"
        steps.append({"op": "group_by", "of": len(steps) - 1, "function": again, "shift": 0})
    steps.append({"op": "to_stream", "of": len(steps) - 1})
    steps.append({"op": "to", "of": len(steps) - 1, "topic": "out"})
    rows = _records(rng, scale, records)
    if rng.random() < failing:
        for step in steps:
            if "function" in step:
                step["fails"] = True
    return Program(tuple(steps), rows, rocksdb=True)


def _windows(rng: Random, scale: int) -> dict[str, Any]:
    length, grace = rng.choice([1, 5, 20]), rng.choice([0, 0, 1, 10]) * scale
    match rng.choice(["time", "sliding", "sessions"]):
        case "time":
            advance = rng.choice([length, 1, min(length, 2)]) * scale
            return {"kind": "time", "size": length * scale, "advance": advance, "grace": grace}
        case "sliding":
            return {"kind": "sliding", "difference": length * scale, "grace": grace}
        case _:
            return {"kind": "sessions", "gap": rng.choice([0, length]) * scale, "grace": grace}


def _records(rng: Random, scale: int, most: int) -> tuple[Row, ...]:
    now, rows = 0, []
    for number in range(rng.randint(2, most)):
        now += rng.choice(_STEPS_OF_TIME)
        late = rng.choice([0, 0, 0, 1, 2, 4, 7, 12, 18, 30])
        timestamp = max(0, now - late) * scale + (rng.choice([0, 0, 1, -1]) if scale > 1 else 0)
        value = None if rng.random() < 0.1 else f"{rng.choice('pqr')}{number}"
        rows.append(("t0", rng.choices(_KEYS, [6, 4, 2, 0.4])[0], value, max(0, timestamp)))
    return tuple(rows)
