"""Every name that Kafka Streams' DSL has is there, or says what to use: on its own class and on those around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from statelib import ConfigurationError
from statelib.calls import KafkasNames, kafkas_names
from tests.calls.samples import OBJECTS, STREAMS, an
from tests.completeness.answers import CHAPTERS
from tests.completeness.kafka_api import read_api
from tests.completeness.rows import UNHELPFUL

if TYPE_CHECKING:
    from pathlib import Path

EARLIER = {
    "KStream": "branch through transform transformValues flatTransform flatTransformValues",
    "KTable": "to through foreach print writeAsText",
}
"""Methods that earlier releases had."""
OF_ALL = "equals hashCode toString"
STREAMS_AND_TABLES = (
    "StreamsBuilder", "KStream", "KTable", "GlobalKTable", "KGroupedStream", "KGroupedTable", "TimeWindowedKStream",
    "SessionWindowedKStream", "BranchedKStream",
)  # fmt: skip
"""Those of them from one of which another comes: a method may be looked for on the wrong one."""


def kafkas() -> dict[str, list[str]]:
    """By class of ours, the names of the methods of Kafka's."""
    api, made = read_api(), {*STREAMS, *OBJECTS, "TopologyTestDriver", "TestInputTopic", "TestOutputTopic"}
    named = {of.ours: api.classes[of.name] for chapter in CHAPTERS.values() for of in chapter if of.ours in made}
    return {
        of: [*OF_ALL.split(), *EARLIER.get(of, "").split(), *{method.name for method in java.methods} - {"new"}]
        for of, java in named.items()
        if of is not None and issubclass(type(an(of, "")), KafkasNames)
    }


KAFKAS = kafkas()


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def asked(of: object, name: str) -> str:
    """The next step; nothing if there is such a method."""
    if hasattr(type(of), name) or (isinstance(of, type) and hasattr(of, name)):
        return ""
    with pytest.raises(ConfigurationError, match=f"has no {name}\\(\\)") as raised:
        getattr(of, name)
    assert raised.value.place["file"] == __file__
    assert raised.value.next_step
    return raised.value.next_step


@pytest.mark.parametrize("of", KAFKAS)
def test_every_name_of_kafkas_is_there_or_says_what_to_use(of: str, tmp_path: Path) -> None:
    one = an(of, str(tmp_path))
    for name in KAFKAS[of]:
        for spelt in {name, snake(name)}:
            for asked_of in (one, type(one)):
                step = asked(asked_of, spelt)
                assert not step.startswith(UNHELPFUL), (of, spelt, step)


@pytest.mark.parametrize("of", STREAMS)
def test_a_name_of_another_class_says_how_to_come_there(of: str, tmp_path: Path) -> None:
    one = an(of, str(tmp_path))
    for other in STREAMS_AND_TABLES:
        for name in KAFKAS[other]:
            step = asked(one, snake(name))
            assert not step.startswith(UNHELPFUL), (of, other, name, step)


@pytest.mark.parametrize(
    ("of", "name", "step"),
    [
        ("KStream", "suppress", "group_by_key().windowed_by(...).count().suppress(...)"),
        ("WindowedKTable", "to", "call to_stream().to()"),
        ("WindowedKTable", "foreach", "call to_stream().foreach()"),
        ("KTable", "foreach", "call to_stream().foreach()"),
        ("KStream", "count", "call group_by_key().count()"),
        ("KStream", "windowedBy", "call group_by_key().windowed_by()"),
        ("KGroupedStream", "to", "call count().to_stream().to()"),
        ("TimeWindowedKStream", "suppress", "call count().suppress()"),
        ("TimeWindowedCogroupedKStream", "emitStrategy", "Suppressed.until_window_closes"),
        ("CogroupedKStream", "toStream", "call aggregate().to_stream()"),
        ("GlobalKTable", "filter", "use StreamsBuilder.table()"),
        ("KTable", "build", "builder.build()"),
        ("TimeWindows", "size", "it is the attribute size_ms"),
        ("KStream", "map_valeus", "did you mean map_values"),
        ("Produced", "with", "JsonSerde"),
    ],
)
def test_the_way_is_the_shortest(of: str, name: str, step: str, tmp_path: Path) -> None:
    assert step in asked(an(of, str(tmp_path)), name)


def test_a_class_that_is_being_made_asks_for_no_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataclass looks for defaults of its fields: making it would take longer by a message for each."""
    asked: list[str] = []

    def told(cls: type, name: str) -> AttributeError:
        asked.append(name)
        return AttributeError(cls, name)

    monkeypatch.setattr(kafkas_names, "_no_method", told)

    @dataclass(frozen=True)
    class Made(kafkas_names.KafkasNames):
        size_ms: int
        grace_ms: int = 0

    assert not asked
    assert (Made(1).size_ms, Made.grace_ms) == (1, 0)
    for name in ("size_ms", "other"):
        with pytest.raises(AttributeError):
            getattr(Made, name)
    assert asked == ["size_ms", "other"]
