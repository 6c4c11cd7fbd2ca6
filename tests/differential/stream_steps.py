"""Steps of random programs that are made of streams: each adds itself if it fits, and says whether it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.differential.making import like
from tests.differential.stores_of_processors import with_store, with_table_store

if TYPE_CHECKING:
    from tests.differential.making import Made, Making, Windows
    from tests.differential.program import Step


def merge(making: Making) -> bool:
    """Two streams of one kind of values and keys."""
    one = making.one("stream")
    other = one and making.one(
        "stream",
        where=lambda made: made is not one and made.is_text == one.is_text is not None and making.may_meet(made, one),
    )
    if one is None or other is None:
        return False
    realm = making.realms.meet(one.realm, other.realm)
    changed = one.key_changed or other.key_changed
    step = {"op": "merge", "of": one.step, "with": other.step}
    return making.add(
        step, one, other, **like(one, realm=realm, key_changed=changed, closes=one.closes and other.closes)
    )


def split(making: Making) -> bool:
    """And all of its branches."""
    made = making.one("stream")
    if made is None:
        return False
    rests = [0] if making.rng.random() < 0.5 else [0, 1]
    default = making.rng.random() < 0.7
    making.add({"op": "split", "of": made.step, "modulus": 3, "rests": rests, "default": default}, made)
    number = len(making.steps) - 1
    for branch in range(len(rests) + default):
        making.add({"op": "branch", "of": number, "branch": branch}, made, **like(made))
    return True


def flat_map_values(making: Making) -> bool:
    """Several values of one."""
    made = making.one("stream")
    if made is None:
        return False
    step = {"op": "flat_map_values", "of": made.step, "most": making.rng.choice([2, 3])}
    return making.add(step, made, **like(made, is_text=True))


def flat_map(making: Making) -> bool:
    """Several records of one, under plain keys."""
    made = making.one("stream")
    if made is None:
        return False
    step = {"op": "flat_map", "of": made.step, "most": making.rng.choice([2, 3])}
    return making.add(step, made, **like(made, is_text=True, key_changed=True, windows=()))


def select_key(making: Making) -> bool:
    """A plain key, made of the value; or, of a windowed key, the key without its window."""
    made = making.one("stream")
    if made is None:
        return False
    step = {"op": "select_key", "of": made.step}
    if len(made.windows) == 1 and making.rng.random() < 0.5:
        step["of_window"] = True
    else:
        step["shift"] = making.rng.randrange(3)
        if making.rng.random() < 0.4:
            step["none"] = making.rng.randrange(4)
    return making.add(step, made, **like(made, key_changed=True, windows=()))


def map_(making: Making) -> bool:
    """A plain key and another value, both made of the value."""
    made = making.one("stream")
    if made is None:
        return False
    step = {"op": "map", "of": made.step, "shift": making.rng.randrange(3), "suffix": making.rng.choice("xyz")}
    if making.rng.random() < 0.4:
        step["none"] = making.rng.randrange(4)
    return making.add(step, made, **like(made, is_text=True, key_changed=True, windows=()))


def peek(making: Making) -> bool:
    """Shows records and passes them on, or does not."""
    made = making.one("stream")
    if made is None:
        return False
    if making.rng.random() < 0.3:
        return making.add({"op": "foreach", "of": made.step}, made)
    return making.add({"op": "peek", "of": made.step}, made, **like(made))


def repartition(making: Making) -> bool:
    """Through a topic."""
    made = making.one("stream")
    if made is None:
        return False
    step = {"op": "repartition", "of": made.step}
    return making.add(step, made, **like(made, realm=making.realms.behind(made.realm), key_changed=False))


def through(making: Making) -> bool:
    """Through a topic that the program writes, too."""
    made = making.one("stream")
    if made is None:
        return False
    topic = f"through{len(making.steps)}"
    making.add({"op": "to", "of": made.step, "topic": topic}, made)
    realm = making.realms.behind(made.realm)
    return making.add(
        {"op": "stream", "topic": topic}, made, **like(made, realm=realm, key_changed=False, closes=False)
    )


def to_table(making: Making) -> bool:
    """What is there for each key."""
    made = making.one("stream")
    if made is None:
        return False
    store = making.store()
    step = {"op": "to_table", "of": made.step, **store}
    realm, versioned = making.by_key(made), "retention" in store
    return making.add(step, made, **like(made, kind="table", realm=realm, key_changed=False, versioned=versioned))


def aggregate(making: Making) -> bool:
    """By key."""
    made = making.one("stream")
    if made is None:
        return False
    function = making.rng.choice(["count", "reduce", "aggregate"] if made.is_text else ["count", "aggregate"])
    store, (by, realm, windows) = making.store(), grouped(making, made)
    step = {"op": "aggregate", "of": made.step, "function": function, **store, **by}
    groups = {"kind": "table", "realm": realm, "windows": windows, "key_changed": False}
    return making.add(step, made, **like(made, **groups, is_text=function != "count", versioned="retention" in store))


def grouped(making: Making, made: Made) -> tuple[Step, int, Windows]:
    """How a stream is grouped: what a step says of that, the realm, and the windows of the keys."""
    if making.rng.random() < 0.2:
        return {"by": making.rng.randrange(3)}, making.realms.behind(made.realm), ()
    return {}, making.by_key(made), made.windows


def cogroup(making: Making) -> bool:
    """Two streams, or one, by key."""
    found = cogrouped(making)
    if found is None:
        return False
    streams, step, realm = found
    step = {"op": "cogroup", **step, **making.store(versions=False)}
    is_text = None if step["function"] == "counts" else True
    made = like(streams[0], kind="table", realm=realm, is_text=is_text, key_changed=False)
    return making.add(step, *streams, **made)


def cogrouped(making: Making, depth: int = 9) -> tuple[list[Made], Step, int] | None:
    """Streams that may be aggregated together, what a step says of them, and the realm in which that is.

    Args:
        making: The program.
        depth: The most windows of a key.
    """
    one = making.one("stream", where=lambda made: len(made.windows) <= depth)
    if one is None:
        return None
    step: Step = {"of": one.step, "function": making.rng.choice(["aggregate", "counts"])}
    other = making.one("stream", where=lambda made: not made.key_changed and _fits(making, one, made))
    if other is None or making.rng.random() < 0.1:
        return [one], step, making.by_key(one)
    streams = [one, other] if making.rng.random() < 0.5 else [other, one]
    step |= {"of": streams[0].step, "with": streams[1].step}
    return streams, step, making.realms.meet(other.realm, making.by_key(one))


def process(making: Making) -> bool:
    """Forwards several times, to one child or another; plain keys also as time passes. Some share a store."""
    made = making.one("stream")
    if made is None:
        return False
    number, rng = len(making.steps), making.rng
    children = [f"c{number}-{child}" for child in range(rng.choice([2, 3]))]
    forwards = [rng.choice([*children, None]) for _ in range(rng.randint(1, 4))]
    step = {"op": "process", "of": made.step, "name": f"p{number}", "forwards": forwards}
    of_table = with_table_store(making, made, step)
    realm = with_store(making, made, step) if of_table is None else of_table
    calls = [_used_by(other) for other in making.steps if "tick" in other]
    together = all(store is not None and store == _used_by(step) for store in calls)
    if not made.windows and together and rng.random() < 0.5:
        step["tick"] = rng.choice([5, 20])
        if rng.random() < 0.3:
            step["start"] = rng.choice([0, 7, 33])
    _with_global_store(making, step)
    making.add(step, made)
    _name_children(making, made, children, number, realm=realm, key_changed=True)
    return True


def process_values(making: Making) -> bool:
    """As `process`, but under the same keys, and never by itself."""
    made = making.one("stream")
    if made is None:
        return False
    number, rng = len(making.steps), making.rng
    children = [f"c{number}-{child}" for child in range(2)]
    forwards = [rng.choice([*children, None]) for _ in range(rng.randint(1, 3))]
    step = {"op": "process_values", "of": made.step, "name": f"p{number}", "forwards": forwards}
    realm = with_store(making, made, step)
    _with_global_store(making, step)
    making.add(step, made)
    _name_children(making, made, children, number, realm=realm)
    return True


def _name_children(making: Making, made: Made, children: list[str], number: int, **of_each: Any) -> None:
    for child in children:
        step = {"op": "named", "of": number, "name": child, "suffix": making.rng.choice("uvw")}
        making.add(step, made, **like(made, is_text=True, **of_each))
        making.pool[-1].once = False


def _with_global_store(making: Making, step: Step) -> None:
    """Maybe lets a processor read a store that every task has in full."""
    if making.rng.random() < 0.1:
        store = f"global{len(making.steps)}"
        making.global_topics.append(f"topic-{store}")
        step["global"] = store


def _used_by(step: Step) -> str | None:
    """The store that a processor uses."""
    return step.get("uses") or step.get("table")


def stream_join(making: Making) -> bool:
    """Two streams, near in time."""
    one = making.one("stream", where=lambda made: not made.key_changed)
    other = one and making.one("stream", where=lambda made: not made.key_changed and making.may_meet(made, one))
    if one is None or other is None:
        return False
    making.rocksdb = True
    before, after = making.rng.choice([(0, 0), (0, 10), (10, 0), (10, 10), (10, -5), (-5, 10)])
    step = {
        "op": "stream_join", "of": one.step, "with": other.step,
        "how": making.rng.choice(["inner", "left", "outer"]),
        "before": before, "after": after, "grace": making.rng.choice([0, 100]),
    }  # fmt: skip
    if making.rng.random() < 0.25:
        step["at_once"] = True
    if making.rng.random() < 0.25:
        step["stores"] = [f"join{len(making.steps)}-{side}" for side in ("this", "other")]
    realm = making.realms.meet(one.realm, other.realm)
    return making.add(step, one, other, **like(one, realm=realm, is_text=True))


def stream_table_join(making: Making) -> bool:
    """Records with what a table has for their key."""
    stream = making.one("stream")
    table = stream and making.one("table", where=lambda made: not made.hidden and _fits(making, stream, made))
    if stream is None or table is None:
        return False
    if table.versioned and making.rng.random() < 0.6:  # Kafka Streams ends at a null key that has to wait
        making.add({"op": "filter", "of": stream.step, "keyed": True}, stream, **like(stream))
        stream = making.pool[-1]
    realm = making.realms.meet(table.realm, making.by_key(stream))
    step: Step = {"op": "stream_table_join", "how": making.rng.choice(["inner", "left"])}
    step |= {"of": stream.step, "with": table.step}
    if "keyed" in making.steps[stream.step] and table.versioned:
        step["grace"] = making.rng.choice([0, 3, 15])
    return making.add(step, stream, table, **like(stream, realm=realm, is_text=True, key_changed=False))


def global_join(making: Making) -> bool:
    """Records with what a global table has for a key that is made of the value, or of their key."""
    stream = making.one("stream")
    if stream is None:
        return False
    table = making.one("global") or _global_table(making)
    step = {"op": "global_join", "how": making.rng.choice(["inner", "left"]), "of": stream.step, "with": table.step}
    if len(stream.windows) <= 1 and making.rng.random() < 0.3:
        step["of_key"] = True
    else:
        step |= {"shift": making.rng.randrange(3), "none": making.rng.randrange(4)}
    return making.add(step, stream, **like(stream, is_text=True))


def _global_table(making: Making) -> Made:
    topic = f"g{len(making.global_topics)}"
    making.global_topics.append(topic)
    making.add({"op": "global_table", "topic": topic, **making.store(versions=False)}, kind="global", realm=-1)
    return making.pool[-1]


def _fits(making: Making, stream: Made, table: Made) -> bool:
    if not stream.key_changed:
        return making.may_meet(stream, table)
    realms, root = making.realms, making.realms.root(table.realm)
    return (
        stream.windows == table.windows
        and not realms.is_fed_by_repartitions(root)
        and root != realms.root(stream.realm)
        and not realms.leads(root, stream.realm)
    )
