"""Steps of random programs that have to do with windows: each adds itself if it fits, and says whether it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.differential.making import like
from tests.differential.stream_steps import cogrouped, grouped
from tests.differential.table_steps import bounds

if TYPE_CHECKING:
    from random import Random

    from tests.differential.making import Making

_DEPTH = 2
"""So many windows a key may have."""


def windowed(making: Making) -> bool:
    """An aggregation by windows, sometimes of keys that have windows already."""
    depth = 1 if making.rng.random() < 0.8 else _DEPTH
    made = making.one("stream", where=lambda made: len(made.windows) < depth)
    if made is None:
        return False
    function = making.rng.choice(["count", "reduce", "aggregate"] if made.is_text else ["count", "aggregate"])
    of_keys, windows = _windows(making)
    store, (by, realm, outer) = making.store(0.3, versions=False), grouped(making, made)
    endless = windows["kind"] == "unlimited"
    if store and not endless and making.rng.random() < 0.4:
        store["kept"] = _least_kept(windows) + making.rng.choice([0, 1, 5, 30])
    step = {"op": "windowed", "of": made.step, "windows": windows, "function": function, **store, **by}
    if not endless and making.rng.random() < 0.25:
        step["final"] = making.rocksdb = True  # in memory, Kafka's stores lose other results
    return making.add(
        step, made, kind="table", realm=realm, windows=(*outer, of_keys),
        is_text=function != "count", forgets=True, known=None if outer else _known(windows),
    )  # fmt: skip


def cogroup_windowed(making: Making) -> bool:
    """Two streams, or one, by windows."""
    found = cogrouped(making, _DEPTH - 1)
    if found is None:
        return False
    streams, step, realm = found
    of_keys, windows = _windows(making)
    step = {"op": "cogroup_windowed", **step, "windows": windows, **making.store(0.3, versions=False)}
    return making.add(
        step, *streams, kind="table", forgets=True, realm=realm, windows=(*streams[0].windows, of_keys),
        is_text=None if step["function"] == "counts" else True,
        known=None if streams[0].windows else _known(windows), hidden=True,
    )  # fmt: skip


def _windows(making: Making) -> tuple[str, dict[str, Any]]:
    """What keys say of the windows, and what is to be known of them; often windows that the program has already."""
    rng = making.rng
    if making.windows and rng.random() < 0.6:
        return rng.choice(making.windows)
    made = _new_windows(rng)
    making.windows.append(made)
    return made


def _new_windows(rng: Random) -> tuple[str, dict[str, Any]]:
    length, grace = rng.choice([5, 20]), rng.choice([0, 0, 10])
    if rng.random() < 0.06:
        start = rng.choice([0, 10])
        return f"unlimited {start}", {"kind": "unlimited", "start": start}
    match rng.choice(["time", "time", "sessions", "sliding"]):
        case "time":
            return f"time {length}", {
                "kind": "time", "size": length, "advance": rng.choice([length, 5, 2]), "grace": grace
            }  # fmt: skip
        case "sessions":
            return "sessions", {"kind": "sessions", "gap": length, "grace": grace}
        case _:
            return f"time {length}", {"kind": "sliding", "difference": length, "grace": grace}


def _has_no_end(windows: str) -> bool:
    return windows.startswith("unlimited")


def _known(windows: dict[str, Any]) -> dict[str, int] | None:
    """When they begin and how long they are, ms; None: that depends on records."""
    if windows["kind"] != "time":
        return None
    return {"advance": windows["advance"], "size": windows["size"]}


def _least_kept(windows: dict[str, Any]) -> int:
    """How long a store keeps them at least, ms."""
    length = windows.get("size") or windows.get("gap") or 2 * windows["difference"]
    return int(length + windows["grace"])


def suppress_windows(making: Making) -> bool:
    """The final results."""
    made = making.one(
        "table",
        where=lambda made: (
            bool(made.windows) and made.closes and not made.versioned and not _has_no_end(made.windows[-1])
        ),
    )
    if made is None:
        return False
    step = {"op": "suppress_windows", "of": made.step, **bounds(making.rng)}
    return making.add(step, made, **like(made, suppressed=True))
