"""First drafts: jobs that describe the application's topology, with its functions left to write."""

from __future__ import annotations

import json
import sys

import pytest

from hindstream.cli.main import main
from hindstream.porting.draft.description import read_description
from hindstream.porting.draft.draft import draft
from hindstream.porting.draft.file import wrapped
from hindstream.porting.draft.knowledge import Knowledge
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import Job
from tests.differential.naming import builder_of, description_of, program_of
from tests.hindstream.porting.ports import PORTS

CHOSEN = "Ports::chosen"
"""Writes to topics that records choose: Kafka prints the class of the lambda that does it."""
TOPOLOGIES = [*dict.fromkeys(port.java for port in PORTS if port.java != CHOSEN), "Ports::named", "Ports::json"]
PROGRAMS = 60
MOST_UNEQUAL = 0.1


def job_of(text: str) -> Job:
    module: dict = {}
    exec(text, module)
    return module["job"]


@pytest.mark.thorough
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_draft_of_a_jar_describes_the_same_topology(topology: str, runner) -> None:
    ready = runner.topology(f"hindstream.ports.{topology}")
    made = draft(ready.description, Knowledge(ready.processors), "port")
    assert made.differences == ()
    assert job_of(made.text).topology.describe() == ready.description
    assert "TODO: what " not in made.text or topology == "Ports::ONCE"  # whose store is a processor's


def test_topics_that_records_choose_are_left_to_name(runner) -> None:
    ready = runner.topology(f"hindstream.ports.{CHOSEN}")
    made = draft(ready.description, Knowledge(ready.processors), "port")
    assert made.unknown == ("which topics KSTREAM-SINK-0000000001 may choose is not told: topics= lists all of them",)
    changed = [line for line in made.differences if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    assert all("extractor class" in line for line in changed)
    assert len(changed) == 2


def test_a_jar_tells_windows_and_kinds_of_joins(runner) -> None:
    def drafted(name: str) -> str:
        ready = runner.topology(f"hindstream.ports.Ports::{name}")
        return draft(ready.description, Knowledge(ready.processors), "port").text

    def ms(count: int) -> str:
        return f"timedelta(milliseconds={count})"

    assert f"TimeWindows.of_size_and_grace({ms(40)}, {ms(30)}).advance_by({ms(10)})" in drafted("hopping")
    assert f"SlidingWindows.of_time_difference_and_grace({ms(40)}, {ms(30)})" in drafted("sliding")
    assert f"SessionWindows.of_inactivity_gap_and_grace({ms(12)}, {ms(30)})" in drafted("finalSessions")
    assert "Suppressed.until_window_closes(" in drafted("finalSessions")
    windows = f"JoinWindows.of_time_difference_and_grace({ms(5)}, {ms(30)}).after({ms(9)})"
    assert windows in drafted("joinedStreams")
    assert ".filter_not(" in drafted("named")
    assert ".left_join(" in drafted("named")
    assert ".left_join(" not in drafted("joined")


@pytest.mark.parametrize("optimization", ["none", "all"])
def test_texts_alone_are_enough_for_most_topologies_with_generated_names(optimization: str) -> None:
    unequal, seen = [], 0
    for seed in range(PROGRAMS):
        steps = [{name: part for name, part in step.items() if name != "name"} for step in program_of(seed)]
        for step in steps:
            if "branches" in step:
                step["branches"] = [None] * len(step["branches"])
        try:
            builder_of(steps).build({"topology.optimization": optimization})
        except ConfigurationError:
            continue  # it cannot run here
        described = description_of(steps, optimization)
        made, seen = draft(described, Knowledge(), "app"), seen + 1
        if made.differences:
            unequal.append(seed)
        else:
            assert job_of(made.text).topology.describe() == described
    assert seen > PROGRAMS // 3
    assert len(unequal) <= MOST_UNEQUAL * seen, unequal


def test_what_the_application_is_optimised_by_is_what_the_text_shows_or_its_properties_say(runner) -> None:
    ready = runner.topology("hindstream.ports.Ports::optimized")
    shown = draft(ready.description, Knowledge(ready.processors), "port")
    both = '"merge.repartition.topics,single.store.self.join"'
    assert shown.text.endswith(f'job = Job("port", builder.build({{"topology.optimization": {both}}}))\n')
    windows = "JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=5), timedelta(milliseconds=30))"
    assert windows in shown.text
    said = draft(ready.description, Knowledge(ready.processors), "port", "all")
    assert said.text.endswith('job = Job("port", builder.build({"topology.optimization": "all"}))\n')
    assert said.differences == shown.differences == ()


TEXT = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [flights])
      --> late
    Processor: late (stores: [])
      --> KSTREAM-AGGREGATE-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [KSTREAM-AGGREGATE-STATE-STORE-0000000001])
      --> none
      <-- late

"""


def test_what_cannot_be_told_is_said_at_its_place() -> None:
    made = draft(TEXT, Knowledge(), "flights")
    assert made.differences == ()
    unknown, windows = made.unknown
    lines = made.text.splitlines()
    assert unknown == "what late is cannot be told by its name"
    assert lines[lines.index(f"# TODO: {unknown}") + 1].startswith("late = flights.process_values(todo_processor(")
    assert windows.startswith("if KSTREAM-AGGREGATE-0000000002 is of windows")
    assert lines[lines.index(f"# TODO: {windows}") + 1].startswith("aggregate_2 = late.group_by_key().aggregate_with(")


def test_what_is_left_to_write_fails_when_it_is_called() -> None:
    module: dict = {}
    exec(draft(TEXT, Knowledge(), "flights").text, module)
    with pytest.raises(NotImplementedError, match="left to write: the filter: the condition"):
        module["todo"]("the filter: the condition")({})
    with pytest.raises(NotImplementedError, match="left to write: late"):
        module["todo_processor"]("late")().process(None)


def test_numbers_that_the_text_does_not_show_are_counted() -> None:
    text = TEXT.replace("0000000002", "0000000008").replace("0000000001", "0000000007")
    made = draft(text, Knowledge(), "flights")
    assert made.differences == ()
    assert "# TODO: the application has counted 6 numbers here for what the text does not show" in made.text


@pytest.mark.parametrize(
    "text", ["", "nothing\n", TEXT.replace("    Processor: late", "    Processor: early"), TEXT[:150]]
)
def test_what_is_no_description_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="this is no description of a topology"):
        read_description(text)


@pytest.mark.parametrize("name", ['late"+print(1)+"', "la(te", "l'ate", "la\\te"])
def test_nothing_but_names_gets_into_the_draft(name: str) -> None:
    for text in (TEXT.replace("late", name), TEXT.replace("[flights]", f"[{name}]")):
        with pytest.raises(ConfigurationError, match="is no name"):
            draft(text, Knowledge(), "flights")


def test_long_calls_have_their_arguments_on_lines_of_their_own() -> None:
    line = f'made = some.call("{"a, (b" * 12}", other(1, 2), [3, 4], {"x" * 40})'
    assert wrapped(line).splitlines() == [
        "made = some.call(", f'    "{"a, (b" * 12}",', "    other(1, 2),", "    [3, 4],", f"    {'x' * 40},", ")",
    ]  # fmt: skip
    assert wrapped("a = b.c(d)") == "a = b.c(d)"


def test_the_command_prints_the_draft_and_what_it_lacks(tmp_path, monkeypatch, capsys) -> None:
    def call(text: str, *options: str, code: int = 0) -> tuple[str, str]:
        (tmp_path / "topology.txt").write_text(text)
        command = ["hindstream", "draft", "--describe", str(tmp_path / "topology.txt"), *options]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == code
        return tuple(capsys.readouterr())

    out, err = call(TEXT, "--name", "late-flights")
    assert job_of(out).name == "late-flights"
    assert err.splitlines() == [
        "3 functions are left to write.",
        "2 things are not told by the text: a TODO says so at each place.",
        "describe() prints what the application's prints.",
    ]  # fmt: skip
    several = TEXT.replace("[flights]", "[flights, trains]")
    assert 'builder.stream(["flights", "trains"])' in call(several)[0]
    pattern = TEXT.replace("[flights]", "flights-[a-z]+")
    out, err = call(pattern, code=1)
    assert "# TODO: a pattern chooses the topics of KSTREAM-SOURCE-0000000000: write stream(re.compile(" in out
    assert '"flights-[a-z]+"), topics=[...]), with all that it matches' in out
    assert "-    Source: KSTREAM-SOURCE-0000000000 (topics: flights-[a-z]+)" in err
    found = json.loads(call(pattern, "--output", "json", code=1)[0])
    assert (len(found["unknown"]), bool(found["differences"])) == (3, True)
    monkeypatch.setattr(sys, "argv", ["hindstream", "draft"])
    with pytest.raises(SystemExit):
        main()
    assert "a draft is made of a text or of a jar" in capsys.readouterr().err
