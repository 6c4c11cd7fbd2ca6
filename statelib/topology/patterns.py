"""Sources that read the topics whose names match a pattern (Kafka's ``stream(Pattern)``).

A pattern matches whole names, as in Kafka. All that it matches is listed beside it: what a replay reads is known before
its first record. So a source with a pattern is one of several topics, which checks its list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.topology.nodes import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from statelib.topology.nodes import Node


def topics_and_pattern(
    topic: str | Iterable[str] | re.Pattern[str], listed: Iterable[str]
) -> tuple[str | Iterable[str], re.Pattern[str] | None]:
    """What a source reads, and by which pattern.

    Args:
        topic: The topic, several of them, or a pattern.
        listed: The topics that the pattern matches.

    Raises:
        ConfigurationError: There is a list and no pattern; or see `listed_topics`.
    """
    if isinstance(topic, re.Pattern):
        return listed_topics(topic, listed), topic
    if shown := list(listed):
        raise ConfigurationError(
            "topics are listed, and there is no pattern that matches them",
            topic=shown[0],
            next_step="give the topics alone: stream([...]); or a pattern with them: re.compile(...), topics=[...]",
        )
    return topic, None


def listed_topics(pattern: re.Pattern[str], topics: Iterable[str]) -> list[str]:
    """The topics of a source with a pattern, each once.

    Raises:
        ConfigurationError: There is none, or the pattern does not match one.
    """
    listed = sorted(topics) if isinstance(topics, set | frozenset) else list(dict.fromkeys(topics))
    if not listed:
        raise ConfigurationError(
            f"the topics that the pattern {pattern.pattern!r} matches are not listed",
            next_step=f"list all that are replayed: re.compile({pattern.pattern!r}), topics=[...]",
        )
    for topic in listed:
        if not pattern.fullmatch(topic):
            raise ConfigurationError(
                f"the pattern {pattern.pattern!r} does not match a topic that is listed with it",
                topic=topic,
                next_step="take the topic from the list, or write a pattern that matches its whole name",
            )
    return listed


def check_patterns(declared: Sequence[Node]) -> None:
    """Looks whether each topic has one source, as Kafka does (``InternalTopologyBuilder.addSource``).

    Raises:
        ConfigurationError: A pattern matches the topic of another source, or one that is written and not listed.
    """
    sources = [node for node in declared if isinstance(node, Source) and not node.internal]
    for source in sources:
        if source.pattern is None:
            continue
        for other in sources:
            for topic in other.topics if other is not source else ():
                if source.pattern.fullmatch(topic):
                    raise ConfigurationError(
                        f"the pattern {source.pattern.pattern!r} of {source.name} matches a topic of another source",
                        topic=topic,
                        node=other.name,
                        next_step="write a pattern that does not match it, or read it with the pattern alone",
                    )
    written = (topic for node in declared if isinstance(node, Sink) and not node.internal for topic in node.topics)
    for topic, name in matched_by_pattern(declared, written).items():
        raise ConfigurationError(
            f"the pattern of {name} matches a topic that the topology writes",
            topic=topic,
            next_step="list it with the pattern if it is to be read, or write a pattern that does not match it",
        )


def matched_by_pattern(declared: Sequence[Node], topics: Iterable[str]) -> dict[str, str]:
    """By topic that a pattern matches and no source reads, the source of the pattern; in order of ``topics``."""
    sources = [node for node in declared if isinstance(node, Source) and node.pattern is not None]
    read = {topic for source in sources for topic in source.topics}
    return {
        topic: source.name
        for topic in topics
        for source in sources
        if topic not in read and source.pattern is not None and source.pattern.fullmatch(topic)
    }
