"""Draws docs/completeness.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tests.completeness.answer import WHOLE, ClassAnswers, Selector, Status, snake
from tests.completeness.answers import CHAPTERS
from tests.completeness.rows import Row, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.completeness.class_files import JavaClass
    from tests.completeness.kafka_api import KafkaApi

PAGE = Path(__file__).parents[2] / "docs" / "completeness.md"
STATUSES: tuple[Status, ...] = get_args(Status)

_HEAD = """\
<!-- drawn by `python -m tests.completeness`: change the answers in tests/completeness/answers -->
# Completeness

All public methods of Kafka Streams {version}, as its jars have them: the DSL, the processor and state API, the test
driver. Each has one answer:

| answer | it means | methods |
|---|---|---|
| **works** | the same call, with the same results | {works} |
| **differs** | another call, or a difference to know: the row says which | {differs} |
| **refused** | not here: the row says why, and what to use instead | {refused} |
| **missing** | not here yet: the row says how far you come without | {missing} |

Overloads count once, unless their answers differ. Much of what is refused belongs to the running client, its settings
and its mocks, which a replay does not have. `equals`, `hashCode` and `toString` are Python's `==`, `hash()` and
`str()`. Exceptions and task assignors are left out.

Names are Kafka's in snake case: `groupByKey` is `group_by_key`, `as` is `as_`, `with` is `with_`. Options such as
`Named` and `Materialized` go where Kafka's overloads have them, or by name. If you call a method of the DSL that is
not here, the error has the text of its row. What "the same results" are, and where the shipped library differs from
what its KIPs promise: [Semantics](semantics.md).
"""


def page(api: KafkaApi) -> str:
    """The whole page.

    Raises:
        ValueError: A class or method has no answer, or an answer no class or method.
    """
    answered = [answers for chapter in CHAPTERS.values() for answers in chapter]
    names, known = Counter(answers.name for answers in answered), Counter(api.classes.keys())
    if names != known:
        raise ValueError(f"without an answer: {[*(known - names)]}; answered twice, or not there: {[*(names - known)]}")
    rows = {answers.name: rows_of(answers, api.classes[answers.name]) for answers in answered}
    total = _count(row for of_class in rows.values() for row in of_class)
    parts = [_HEAD.format(version=api.version, **{status: f"{total[status]:,}" for status in STATUSES})]
    parts += ["## Classes\n", *_summary(rows)]
    for chapter, classes in CHAPTERS.items():
        parts.append(f"## {chapter}\n")
        parts += [_section(answers, api.classes[answers.name], rows[answers.name]) for answers in classes]
    return "\n".join(parts)


def _summary(rows: dict[str, list[Row]]) -> list[str]:
    lines = ["| class | works | differs | refused | missing |", "|---|---|---|---|---|"]
    for chapter, classes in CHAPTERS.items():
        of_all = _count(row for answers in classes for row in rows[answers.name])
        lines.append(f"| **[{chapter}](#{_anchor(chapter)})** | {_cells(of_all, '**')} |")
        for answers in classes:
            counted = _count(rows[answers.name])
            if counted.total():
                lines.append(f"| [{answers.simple_name}](#{_anchor(_title(answers))}) | {_cells(counted)} |")
    return [*lines, ""]


def _cells(counted: Counter[Status], around: str = "") -> str:
    return " | ".join(f"{around}{counted[status]}{around}" if counted[status] else "" for status in STATUSES)


def _count(rows: Iterable[Row]) -> Counter[Status]:
    counted: Counter[Status] = Counter()
    for row in rows:
        counted[row.answer.status] += row.counts
    return counted


def _title(answers: ClassAnswers) -> str:
    same = [other for chapter in CHAPTERS.values() for other in chapter if other.simple_name == answers.simple_name]
    return answers.simple_name if len(same) == 1 else f"{answers.simple_name} ({answers.name.rpartition('.')[0]})"


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower() if c.isalnum() or c in " -").replace(" ", "-")


def _section(answers: ClassAnswers, java_class: JavaClass, rows: Sequence[Row]) -> str:
    ours = f" The class here: `{answers.ours}`." if answers.ours and answers.ours != answers.simple_name else ""
    lines = [f"### {_title(answers)}", f"{answers.text}{ours}", ""]
    if rows:
        lines += ["| method | KIP | answer |", "|---|---|---|", *(_line(row, java_class) for row in rows), ""]
    return "\n".join(lines)


def _line(row: Row, java_class: JavaClass) -> str:
    shown = ", ".join(_shown(selector) for selector in row.methods)
    if row.methods[0].method == WHOLE:
        names = sorted({method.name for method in java_class.methods if not method.is_new})
        of_all = f"all {len(names)}: " if len(names) > 1 else ""
        shown = of_all + ", ".join(_shown(Selector(name)) for name in names)
    label = row.methods[0].label
    kip = row.answer.kip
    link = f"[{kip}](https://cwiki.apache.org/confluence/display/KAFKA/KIP-{kip})" if kip else ""
    return f"| {f'{label}: ' if label else ''}{shown} | {link} | {_answer(row)} |"


def _shown(selector: Selector) -> str:
    name = "constructor" if selector.method == "new" else f"`{selector.method}`"
    types = sorted(selector.types)
    if not types:
        return name
    if types == ["deprecated"]:
        return f"{name} (deprecated)"
    return f"{name} with {' or '.join(f'`{of}`' for of in types)}"


def _answer(row: Row) -> str:
    answer = row.answer
    if answer.status == "works":
        names = dict.fromkeys(
            answer.name or snake(selector.method) for selector in row.methods if selector.method != "new"
        )
        return f"works{': ' if names else ''}{', '.join(f'`{name}`' for name in names)}"
    text = answer.text.replace("|", "\\|")
    return f"**{answer.status}**: {_begun_small(text)}"


def _begun_small(text: str) -> str:
    """As what follows a colon; a name stays as it is."""
    word = text.partition(" ")[0].rstrip(",.:;'s")
    is_name = word in {"Kafka", "Python", "Arrow", "RocksDB"} or word[1:] != word[1:].lower()
    return text if is_name else text[:1].lower() + text[1:]
