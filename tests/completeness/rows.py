"""The rows of the page: Kafka's methods with the answers for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

import statelib
from statelib import ConfigurationError
from statelib.calls import KafkasNames, NotInThisDsl
from statelib.operators.processors.operator import ProcessOperator
from statelib.testing import topics
from tests.completeness.answer import WHOLE, Answer, ClassAnswers, Selector, missing, snake

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.completeness.class_files import JavaClass, JavaMethod

TOLD_BY = {"ProcessorContext": ProcessOperator}
"""What says of a class which is only an interface that it has no such method."""
REFUSED: dict[tuple[str | None, str], Callable[[], object]] = {
    ("JoinWindows", "of"): lambda: statelib.JoinWindows.of(timedelta(seconds=1)),
    ("Materialized", "withCachingEnabled"): lambda: statelib.Materialized.as_("store").with_caching_enabled(),
}
"""Calls of methods that are there to refuse."""
NEW = missing("New in this release of Kafka Streams: nobody has looked at it yet")
_IN_BRACKETS = r"\((?:[^()]|\([^()]*\))*\)"
_CALL = re.compile(rf"(?<!\w)\.?[A-Za-z_][\w.]*{_IN_BRACKETS}(?:\.\w+{_IN_BRACKETS})*")
UNHELPFUL = ("it has", "did you mean")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the page: methods with one answer.

    Attributes:
        methods: Selectors of them.
        answer: With its whole text.
        counts: How many methods these are; 0: it stands beside others that count.
    """

    methods: tuple[Selector, ...]
    answer: Answer
    counts: int


def our_class(name: str) -> Any:
    """One of our classes.

    Raises:
        AttributeError: There is none.
    """
    return getattr(topics if name in {"TestInputTopic", "TestOutputTopic"} else statelib, name)


def rows_of(answers: ClassAnswers, java_class: JavaClass) -> list[Row]:
    """The lines of a class: those of its answers, then what is new and has none.

    Raises:
        ValueError: A method has no answer, or an answer no method.
    """
    selectors, known = answers.rows(), [method for method in java_class.methods if not method.is_new]
    added = [Row((Selector(str(method)),), NEW, 1) for method in java_class.methods if method.is_new]
    if [selector.method for selector, _ in selectors] == [WHOLE]:
        _, answer = selectors[0]
        return [Row((Selector(WHOLE),), answer, len({method.name for method in known})), *added]
    taken = {id(selector): 0 for selector, _ in selectors}
    for method in known:
        fitting = [selector for selector, _ in selectors if fits(selector, method)]
        beside = [selector for selector in fitting if selector.label]
        most_special = [selector for selector in fitting if not selector.label and selector.types]
        others = [selector for selector in fitting if not selector.label and not selector.types]
        if not most_special + others:
            raise ValueError(f"{answers.name}.{method} has no answer")
        for selector in beside + (most_special[:1] or others[:1]):
            taken[id(selector)] += 1
    unused = [selector for selector, _ in selectors if not taken[id(selector)]]
    if unused:
        raise ValueError(f"{answers.name} has answers for methods that are not there: {unused}")
    return _grouped(answers, selectors) + added


def fits(selector: Selector, method: JavaMethod) -> bool:
    """Whether a row is about an overload."""
    kinds = {*method.parameters, *(["deprecated"] if method.deprecated else [])}
    return selector.method == method.name and (not selector.types or bool(selector.types & kinds))


def told(answers: ClassAnswers, method: str) -> str:
    """What our class says to somebody who asks for a method that it has not; nothing if it does not speak."""
    if method == "new":
        return ""
    if (answers.ours, method) in REFUSED:
        with pytest.raises(ConfigurationError) as raised:
            REFUSED[answers.ours, method]()
        step = raised.value.next_step or ""
        return f"{raised.value.what}. {step[:1].upper()}{step[1:]}"
    cls: Any = TOLD_BY.get(answers.ours or "") or (our_class(answers.ours) if answers.ours else None)
    if cls is None or not issubclass(cls, KafkasNames):
        return ""
    try:
        getattr(cls, snake(method))
    except NotInThisDsl as error:
        return error.next_step or ""
    return ""


def _grouped(answers: ClassAnswers, selectors: list[tuple[Selector, Answer]]) -> list[Row]:
    rows: list[Row] = []
    for selector, answer in selectors:
        text = answer.text or (_as_markdown(told(answers, selector.method)) if answer.status != "works" else "")
        whole = replace(answer, text=text)
        row = Row((selector,), whole, 0 if selector.label and answer.status == "works" else 1)
        last = rows[-1] if rows else None
        if last is not None and last.answer == whole and last.methods[0].label == selector.label:
            rows[-1] = replace(last, methods=(*last.methods, selector), counts=last.counts + row.counts)
        else:
            rows.append(row)
    return rows


def _as_markdown(step: str) -> str:
    """Names and calls in a message as code."""
    return _CALL.sub(r"`\g<0>`", step)
