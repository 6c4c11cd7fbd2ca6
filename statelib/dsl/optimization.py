"""Which optimisations a topology is given (Kafka's ``topology.optimization``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

Optimization = Literal["reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"]
"""One of Kafka Streams' (``StreamsConfig``)."""

OPTIMIZATIONS: tuple[Optimization, ...] = get_args(Optimization)
SETTING = "topology.optimization"


def optimizations_of(props: Mapping[str, str]) -> frozenset[Optimization]:
    """What a topology is to be optimised by (``StreamsConfig.verifyTopologyOptimizationConfigs``).

    Args:
        props: The properties that it is built with.

    Raises:
        ConfigurationError: Another property than ``topology.optimization`` is among them, or it is none that Kafka
            knows.
    """
    for name in props:
        if name != SETTING:
            step = did_you_mean(name, [SETTING], f"leave it out: a topology is built with {SETTING} alone")
            raise ConfigurationError(f"a topology has no setting {name}", setting=name, next_step=step)
    given = props.get(SETTING, "none")
    if not isinstance(given, str):
        what = f"{SETTING} is {given!r}, which is no text"
        raise ConfigurationError(what, setting=SETTING, next_step="give it as in Kafka, such as all")
    names = [name.strip() for name in given.split(",")]
    known = ("none", "all", *OPTIMIZATIONS)
    for name in names:
        if name not in known:
            step = did_you_mean(name, known, f"name one of {', '.join(known)}")
            raise ConfigurationError(f"Kafka Streams has no optimisation {name!r}", setting=SETTING, next_step=step)
    if len(names) > 1 and not {"none", "all"}.isdisjoint(names):
        what = f"{given!r} names none or all, and others with it"
        raise ConfigurationError(what, setting=SETTING, next_step="give none or all alone, or a list of the others")
    if names == ["all"]:
        return frozenset(OPTIMIZATIONS)
    return frozenset(of for of in OPTIMIZATIONS if of in names)
