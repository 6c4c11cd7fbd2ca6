"""Which optimisations a topology is given (Kafka's ``topology.optimization``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from statelib.errors.did_you_mean import did_you_mean, next_to
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

Optimization = Literal["reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"]
"""One of Kafka Streams' (``StreamsConfig``)."""

OPTIMIZATIONS: tuple[Optimization, ...] = get_args(Optimization)
SETTING = "topology.optimization"
PROCESSORS = "__enable.process.processValue.fix__"


@dataclass(frozen=True, slots=True)
class Optimizations:
    """What a topology is optimised by.

    Attributes:
        rules: The optimisations.
        knows_processors: Whether ``process`` counts as changing keys, and ``process_values`` as changing values
            (KAFKA-19668). In Kafka Streams only if its internal setting says so.
    """

    rules: frozenset[Optimization] = frozenset()
    knows_processors: bool = False


def optimizations_of(props: Mapping[str, str]) -> Optimizations:
    """What a topology is to be optimised by (``StreamsConfig.verifyTopologyOptimizationConfigs``).

    Args:
        props: The properties that it is built with.

    Raises:
        ConfigurationError: Another property is among them, or one has a value that Kafka does not know.
    """
    for name, value in props.items():
        if name not in {SETTING, PROCESSORS}:
            step = next_to(name, [SETTING]) or f"leave it out: a topology is built with {SETTING} alone"
            raise ConfigurationError(f"a topology has no setting {name}", setting=name, next_step=step)
        if not isinstance(value, str):
            what = f"{name} is {value!r}, which is no text"
            raise ConfigurationError(what, setting=name, next_step="give it as in Kafka, as a text")
    fixed = props.get(PROCESSORS, "false").strip().lower()
    if fixed not in {"true", "false"}:
        raise ConfigurationError(f"{PROCESSORS} is {fixed}", setting=PROCESSORS, next_step="give it as true or false")
    return Optimizations(_rules_of(props.get(SETTING, "none")), fixed == "true")


def _rules_of(given: str) -> frozenset[Optimization]:
    names = [name.strip() for name in given.split(",")]
    known = ("none", "all", *OPTIMIZATIONS)
    for name in names:
        if name not in known:
            step = did_you_mean(name, known, "name one of:")
            raise ConfigurationError(f"Kafka Streams has no optimisation {name!r}", setting=SETTING, next_step=step)
    if len(names) > 1 and not {"none", "all"}.isdisjoint(names):
        what = f"{given!r} names none or all, and others with it"
        raise ConfigurationError(what, setting=SETTING, next_step="give none or all alone, or a list of the others")
    if names == ["all"]:
        return frozenset(OPTIMIZATIONS)
    return frozenset(of for of in OPTIMIZATIONS if of in names)
