"""Random programs of the Processor API: sources, processors, stores and sinks that are connected by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from tests.differential.making import Making
    from tests.differential.program import Step


def describe(making: Making) -> None:
    """Adds the steps of one."""
    rng = making.rng
    nodes = _sources(making)
    has_read_only = rng.random() < 0.3
    parents_of = {source: [source] for source in nodes}  # by node, the sources above it
    processors = [f"p{number}" for number in range(rng.randint(1, 5))]
    steps: dict[str, Step] = {}
    for name in processors:
        parents = rng.sample(nodes, rng.choice([1, 1, 2]) if len(nodes) > 1 else 1)
        steps[name] = {"op": "add_processor", "name": name, "parents": parents, "forwards": []}
        parents_of[name] = [source for parent in parents for source in parents_of[parent]]
        nodes.append(name)
    children: dict[str, list[str]] = {name: [] for name in nodes}
    for name, step in steps.items():
        for parent in step["parents"]:
            children[parent].append(name)
    sinks = _sinks(rng, nodes, children)
    for name, step in steps.items():
        step["forwards"] = [rng.choice([*children[name], None, None]) for _ in range(rng.randint(1, 3))]
    if has_read_only:
        making.topics.append("t3")
        making.low_level_sources.append("read-only-source")
        making.steps.append({"op": "add_read_only", "topic": "t3", "store": "read-only"})
        for name in rng.sample(processors, rng.randint(1, len(processors))):
            steps[name]["read_only"] = "read-only"
            parents_of[name].append("read-only-source")
    together = _with_stores(making, steps, parents_of)
    making.steps += [*steps.values(), *sinks]
    if len({together[source] for source in making.low_level_sources}) > 1:
        for step in steps.values():  # Kafka's driver has one stream time for all sub-topologies
            step.pop("tick", None)


def _sources(making: Making) -> list[str]:
    topics, names = ["t0", "t1", "t2"][: making.rng.choice([1, 2, 3])], []
    making.topics += topics
    while topics:
        count = making.rng.choice([1, 1, 2])
        names.append(f"source{len(names)}")
        making.steps.append({"op": "add_source", "name": names[-1], "topics": topics[:count]})
        topics = topics[count:]
    making.low_level_sources = list(names)
    return names


def _sinks(rng: Random, nodes: list[str], children: dict[str, list[str]]) -> list[Step]:
    """One below each node that has nothing below it, and some of the others; some below several."""
    ends = [name for name in nodes if not children[name] or rng.random() < 0.3]
    sinks: list[Step] = []
    while ends:
        parents = [ends.pop(0) for _ in range(min(len(ends), rng.choice([1, 1, 1, 2])))]
        name = f"sink{len(sinks)}"
        sinks.append({"op": "add_sink", "name": name, "topic": f"out{len(sinks)}", "parents": parents})
        for parent in parents:
            children[parent].append(name)
    return sinks


def _with_stores(making: Making, steps: dict[str, Step], parents_of: dict[str, list[str]]) -> dict[str, str]:
    """Gives processors stores and calls; by source, a name for all that hang together with it."""
    rng = making.rng
    together = {source: source for source in making.low_level_sources}

    def join(sources: list[str]) -> None:
        of = {together[source] for source in sources}
        together.update({source: min(of) for source, name in together.items() if name in of})

    for name in steps:
        join(parents_of[name])
    for number in range(rng.choice([0, 1, 1, 2])):
        users = rng.sample([*steps], rng.randint(1, min(3, len(steps))))
        users = [name for name in users if "uses" not in steps[name]]
        for name in users:
            steps[name]["uses"] = f"shared{number}"
        if users:
            join([source for name in users for source in parents_of[name]])
    _with_global_store(making, steps)
    for step in steps.values():
        if rng.random() < 0.4:
            step["tick"] = rng.choice([5, 10, 20])
            if rng.random() < 0.3:
                step["start"] = rng.choice([0, 7, 33])
    return together


def _with_global_store(making: Making, steps: dict[str, Step]) -> None:
    if making.rng.random() < 0.3:
        making.global_topics.append("g0")
        making.steps.append({"op": "add_global", "topic": "g0", "store": "global"})
        for number, step in enumerate(steps.values()):
            if not number or making.rng.random() < 0.6:  # a store that nobody reads is not filled here
                step["global"] = "global"
