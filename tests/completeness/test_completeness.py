"""docs/completeness.md is current and true: it answers for every method, and what it names is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import pytest

from statelib.calls import KafkasNames
from tests.completeness.answer import Answer, ClassAnswers, Selector, snake, works
from tests.completeness.answers import CHAPTERS
from tests.completeness.class_files import JavaMethod
from tests.completeness.kafka_api import KafkaApi, api_of, read_api
from tests.completeness.page import PAGE, page
from tests.completeness.rows import NEW, REFUSED, TOLD_BY, UNHELPFUL, our_class, rows_of, told
from tests.completeness.usages import names_in_tests, used_in_tests
from tests.differential.kafka import PROJECT
from tests.kafka.maven import build, newest

if TYPE_CHECKING:
    from collections.abc import Iterator

ARTIFACTS = ("kafka-streams", "kafka-streams-test-utils")
BY_NAME_ALONE = {
    "AggregationWithHeaders": "aggregation",
    "Cancellable": "cancel",
    "KeyValueStore": "reverse_all reverse_range",
    "ProcessorContext": "application_id current_stream_time_ms record_metadata",
    "RecordMetadata": "offset partition topic",
    "SessionWindowedKStream": "count reduce",
    "StateStore": "close",
    "StoreBuilder": "name",
    "TopologyTestDriver": "close",
    "ValueAndTimestamp": "timestamp value",
    "Windowed": "key",
}
"""What tests use without telling in their text of which class it is (`tests.completeness.usages`)."""
AGAIN = "draw it again: python -m tests.completeness"


def answers() -> Iterator[tuple[ClassAnswers, Selector, Answer]]:
    for chapter in CHAPTERS.values():
        for of_class in chapter:
            for selector, answer in of_class.rows():
                yield of_class, selector, answer


def ours(of_class: ClassAnswers) -> Any:
    return TOLD_BY.get(of_class.ours or "") or our_class(of_class.ours or "")


def has(cls: Any, name: str) -> bool:
    return name in dir(cls) or any(name in getattr(base, "__annotations__", {}) for base in cls.__mro__)


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_api()), AGAIN


def test_the_page_says_where_results_depend_on_the_place_of_kafkas_stores_as_semantics_does() -> None:
    semantics = (PAGE.parent / "semantics.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip() for line in semantics.splitlines() if "n-memory stores" in line}
    assert rows == {"emit on window close (KIP-825)", "join of two streams with in-memory stores, null values"}, (
        "say it in tests/completeness/answers/options.py, too"
    )
    said = [line for line in page(read_api()).splitlines() if "stores in memory" in line or "stores in RocksDB" in line]
    assert len(said) >= 2
    assert all("null values" in line and "emit on window close" in line for line in said)


def test_what_works_or_differs_is_there() -> None:
    absent = [
        (of_class.name, selector.method, name)
        for of_class, selector, answer in answers()
        if of_class.ours and answer.status in {"works", "differs"} and selector.method != "new"
        if (name := snake(selector.method) if answer.name is None else answer.name)
        if not has(ours(of_class), name)
    ]
    assert absent == []


@pytest.mark.slow
def test_what_works_has_a_class_of_ours_and_a_test_that_uses_it() -> None:
    names = {
        (of_class.ours, answer.name or snake(selector.method))
        for of_class, selector, answer in answers()
        if answer.status == "works" and selector.method != "new"
    }
    assert len(names) > 200
    assert [of_class.name for of_class, _, answer in answers() if answer.status == "works" and not of_class.ours] == []
    by_name_alone = {(of, name) for of, text in BY_NAME_ALONE.items() for name in text.split()}
    assert names - used_in_tests() - by_name_alone == set()
    assert by_name_alone - (names - used_in_tests()) == set(), "tests use it of its class"
    assert {name for _, name in by_name_alone} - names_in_tests() == set()


def test_a_method_that_is_not_here_says_what_the_page_says() -> None:
    """Either our class says it, and the page repeats that, or the page has a text of its own."""
    wrong = []
    for of_class, selector, answer in answers():
        if answer.status in {"works", "differs"}:
            assert answer.text or answer.status == "works", (of_class.name, selector)
            continue
        said = told(of_class, selector.method)
        one_of_many = bool(selector.types or selector.label or selector.method == "new")
        if said.startswith(UNHELPFUL) or bool(answer.text) == bool(said) != one_of_many:
            wrong.append((of_class.name, selector.method, answer.text, said))
    assert wrong == []


def test_what_is_refused_or_missing_is_not_there() -> None:
    there = [
        (of_class.name, selector.method)
        for of_class, selector, answer in answers()
        if of_class.ours and answer.status in {"refused", "missing"} and not selector.types and not selector.label
        if selector.method != "new" and has(ours(of_class), snake(selector.method))
        if (of_class.ours, selector.method) not in REFUSED
    ]
    assert there == []


def test_classes_that_can_speak_do() -> None:
    silent = [
        (of_class.name, selector.method)
        for of_class, selector, answer in answers()
        if of_class.ours and issubclass(ours(of_class), KafkasNames) and answer.status in {"refused", "missing"}
        if not selector.types and not selector.label and selector.method != "new"
        if not told(of_class, selector.method)
    ]
    assert silent == []


def test_the_methods_are_those_of_the_library_that_tests_compare_with() -> None:
    lib = build(PROJECT) / "lib"
    jars = [jar for artifact in ARTIFACTS for jar in lib.glob(f"{artifact}-[0-9]*.jar")]
    assert api_of(jars) == read_api(), f"{AGAIN} {' '.join(map(str, jars))}"


@pytest.mark.long
def test_no_newer_release_has_other_methods(tmp_path: Path) -> None:
    jars = [newest(f"org.apache.kafka:{artifact}", tmp_path / artifact) for artifact in ARTIFACTS]
    now, known = api_of(jars).classes, read_api().classes
    changed = {name for name in now.keys() | known.keys() if now.get(name) != known.get(name)}
    assert changed == set(), f"{AGAIN} {' '.join(map(str, jars))}"


def test_a_method_without_an_answer_is_found() -> None:
    named = read_api().classes["kstream.Named"]
    with pytest.raises(ValueError, match=r"kstream\.Named\.withName\(String\) has no answer"):
        rows_of(ClassAnswers("kstream.Named", "Named", "", {"as": works()}), named)
    with pytest.raises(ValueError, match="for methods that are not there.*without"):
        rows_of(ClassAnswers("kstream.Named", "Named", "", {"as, withName, without": works()}), named)


def test_what_a_release_adds_is_missing_until_somebody_has_looked_at_it() -> None:
    """An overload of a method that has an answer, too, and a method of a class that has one answer for all."""
    known = read_api()
    named, metadata = known.classes["kstream.Named"], known.classes["TaskMetadata"]
    more = (*named.methods, JavaMethod("as", ("String", "int"))), (*metadata.methods, JavaMethod("host", ()))
    now = {"kstream.Named": replace(named, methods=more[0]), "TaskMetadata": replace(metadata, methods=more[1])}
    written = KafkaApi("4.5.0", {**known.classes, **now}).since(known)
    lines = page(_read(written)).splitlines()
    assert [line for line in lines if "nobody has looked" in line] == [
        f"| `{method}` |  | **missing**: {NEW.text[0].lower()}{NEW.text[1:]} |"
        for method in ("as(String, int)", "host()")
    ]
    assert _read(written.since(_read(written))) == _read(written), "it stays new when the page is drawn again"
    assert "nobody has looked" in page(_read(written.since(_read(written))))
    assert page(known) == page(known.since(known))


def _read(api: KafkaApi) -> KafkaApi:
    with NamedTemporaryFile("w+", encoding="utf-8") as file:
        file.write(api.text())
        file.flush()
        return read_api(Path(file.name))


def test_no_row_is_empty_or_points_at_another_without_its_name() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert [row for row in rows if "| all 0" in row or "see above" in row.lower() or row.startswith("|  |")] == []
