"""``hindstream try`` as a user meets it: on a job that really ran, with kills, and with what is left behind it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import hindstream as library
from hindstream.cli.main import app
from hindstream.trials import forks
from hindstream.trials.forks import drop_dead_trials
from statelib import load_job
from statelib.commits.expiry import expire_before
from statelib.commits.forks import forks_of
from statelib.commits.versions.drop_fork import drop_fork
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.job.user_code import forget_files
from statelib.settings.settings import Settings
from statelib.storage import Storage
from tests.command import hindstream as command
from tests.task.pipeline import Pipeline

FILE = """
from datetime import timedelta

from hindstream import Job, StreamsBuilder, TimeWindows

GRACE = timedelta(seconds=0)

builder = StreamsBuilder("counting")
(
    builder.stream("views")
    .group_by_key()
    .windowed_by(TimeWindows.of_size_and_grace(timedelta(seconds=10), GRACE))
    .count()
    .to_stream()
    .to("counts")
)
job = Job("counting", builder.build())
"""
LONGER = FILE.replace("seconds=0", "seconds=5")
LATE_MS = 61_000
"""When a record comes that belongs to the window before: late, but for a grace period of five seconds."""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory) -> Path:
    """Five commits of the job; to be copied."""
    folder = tmp_path_factory.mktemp("replayed")
    (folder / "old.py").write_text(FILE)
    (folder / "new.py").write_text(LONGER)
    made = Pipeline(folder, load_job(f"{folder}/old.py:job").topology, "counting")
    records = [(f"k{n % 3}", n, n * 1000) for n in range(100)]
    records[LATE_MS // 1000 + 1 : LATE_MS // 1000 + 1] = [("k0", 0, 59_000)]
    made.archive("views", records, (pa.string(), pa.int64()), partitions=1)
    for end in (20_000, 40_000, 60_000, 80_000):
        made.run(end)
    made.run()
    return folder


@pytest.fixture
def pipeline(replayed, tmp_path) -> Pipeline:
    shutil.copytree(replayed, tmp_path, dirs_exist_ok=True)
    return Pipeline(tmp_path, load_job(f"{tmp_path}/old.py:job").topology, "counting")


def paths(warehouse: Storage) -> list[str]:
    """All files, but for what maintenance of the job has written down."""
    return sorted(entry.path for entry in warehouse.list() if entry.path != "jobs/counting/maintenance.json")


class Ended:
    """What a call of the command in this process has said, and its exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        forget_files()
        engine = [] if "--engine" in arguments else ["--engine", "local"]
        self.code = app(["try", *arguments, *engine], obj={}, standalone_mode=False) or 0
        self.out, self.err = capsys.readouterr()

    def of_counts(self) -> dict[str, int]:
        (sink,) = (one for one in json.loads(self.out)["sinks"] if one["a"] == "counts")
        return {name: sink["difference"][name] for name in ("only_a", "only_b", "changed", "equal", "shared")}


@pytest.fixture
def tries(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: Ended(capsys, *arguments)


def test_the_same_version_does_not_differ_and_nothing_is_left(pipeline, tmp_path, tries) -> None:
    before = paths(pipeline.warehouse)
    result = tries("old.py:job")
    assert result.code == 0
    assert "old.py:job, as try-" in result.err
    assert "replays from the beginning; 1 slice to replay." in result.err
    assert "counts is equal" in result.out
    assert paths(pipeline.warehouse) == before
    assert not list((tmp_path / ".hindstream").rglob("try-*"))


def test_a_longer_grace_period_lets_one_record_in(pipeline, tries) -> None:
    before = paths(pipeline.warehouse)
    result = tries("new.py:job", "--against", "counting", "--output", "json")
    assert (result.code, result.of_counts()) == (1, {"only_a": 0, "only_b": 0, "changed": 1, "equal": 29, "shared": 0})
    assert json.loads(result.out)["a"] == {"job": "counting", "commit": 5}
    assert paths(pipeline.warehouse) == before


def test_stores_and_a_part_of_the_time_may_be_compared(pipeline, tries) -> None:
    result = tries("new.py:job", "--stores", "--since", "60000", "--output", "json")
    assert result.of_counts()["changed"] == 0
    assert json.loads(result.out)["stores"]


def test_from_a_commit_on_only_what_follows_is_read(pipeline, tries) -> None:
    result = tries("old.py:job", "--from", "1970-01-01T00:00:45Z", "--output", "json")
    assert "goes on from commit 2 of counting; 1 slice to replay." in result.err
    assert (result.code, result.of_counts()) == (0, {"only_a": 0, "only_b": 0, "changed": 0, "equal": 18, "shared": 40})


def test_a_commit_that_ends_at_the_time_is_one_to_go_on_from(pipeline, tries) -> None:
    assert "goes on from commit 3 of counting" in tries("old.py:job", "--from", "60000").err


def test_before_the_first_commit_there_is_the_beginning(pipeline, tries) -> None:
    result = tries("old.py:job", "--from", "19000")
    assert "from the beginning: no commit whose state is kept has ended by 1970-01-01T00:00:19.000Z" in result.err


def test_a_state_that_has_expired_is_not_gone_on_from(pipeline, tries) -> None:
    expire_before(pipeline.warehouse, "counting", 4)
    assert "from the beginning: no commit" in tries("old.py:job", "--from", "60000").err
    assert "goes on from commit 4" in tries("old.py:job", "--from", "80000").err


def test_a_store_that_does_not_fit_is_named_with_the_ways_on_and_all_is_cleaned_up(pipeline, tries) -> None:
    before = paths(pipeline.warehouse)
    with pytest.raises(ConfigurationError, match="reset_stores"):
        tries("new.py:job", "--from", "40000")
    assert paths(pipeline.warehouse) == before
    store = "KSTREAM-AGGREGATE-STATE-STORE-0000000001"
    result = tries("new.py:job", "--from", "40000", "--set", f"reset_stores={store}", "--output", "json")
    assert result.of_counts()["changed"] == 1
    assert paths(pipeline.warehouse) == before


def test_up_to_a_commit(pipeline, tries) -> None:
    by_time = tries("new.py:job", "--to", "1970-01-01T00:01:20Z", "--output", "json")
    assert json.loads(by_time.out)["a"] == {"job": "counting", "commit": 4}
    by_number = tries("new.py:job", "--against", "counting@4", "--output", "json")
    assert by_number.of_counts() == by_time.of_counts() == {**by_time.of_counts(), "changed": 1, "equal": 23}
    assert tries("new.py:job", "--against", "counting@3").code == 0


def test_between_commits_the_job_is_replayed_as_well(pipeline, tries) -> None:
    before = paths(pipeline.warehouse)
    with pytest.raises(ConfigurationError, match="no commit that ends at 1970-01-01T00:01:10.000Z; its commit 3 ends"):
        tries("new.py:job", "--to", "70000")
    result = tries("new.py:job", "--against", "old.py:job", "--to", "70000", "--output", "json")
    assert "old.py:job, as try-" in result.err
    assert "-old, goes on from commit 3 of counting; 1 slice to replay." in result.err
    assert result.of_counts() == {"only_a": 0, "only_b": 0, "changed": 1, "equal": 20, "shared": 0}
    with pytest.raises(ConfigurationError, match="by another topology than the file has"):
        tries("old.py:job", "--against", "new.py:job", "--to", "70000")
    assert tries("old.py:job", "--against", "old.py:job", "--to", "70000", "--from", "45000").code == 0
    assert paths(pipeline.warehouse) == before


def test_a_fork_that_is_kept_goes_on(pipeline, tries, tmp_path) -> None:
    before = paths(pipeline.warehouse)
    assert tries("new.py:job", "--keep", "longer").code == 1
    assert forks_of(pipeline.warehouse, "counting") == ("longer",)
    assert not drop_dead_trials("counting", Settings(warehouse=str(tmp_path / "warehouse")))
    assert library.read("counts", job="longer", warehouse=tmp_path / "warehouse").to_pandas().shape[0] == 101
    with pytest.raises(ConfigurationError, match="there is a job of this name already"):
        tries("new.py:job", "--keep", "longer")
    drop_fork(pipeline.warehouse, "longer", now_ms=0)
    assert paths(pipeline.warehouse) == before


@pytest.mark.parametrize(("arguments", "told"), [
    (("--from", "90000", "--to", "80000"), "nothing lies between"),
    (("--from", "100000"), "nothing lies between"),
    (("--from", "90000", "--to", "70000"), "nothing lies between"),
    (("--to", "1970-01-01T00:00"), "the time has no time zone"),
    (("--against", "counting@4", "--to", "80000"), "two ends of the trial are given"),
    (("--against", "elsewhere"), "the job has no commits"),
    (("--against", "counting@9"), "there is no such commit"),
    (("--sink", "count"), "the job has no such sink"),
    (("--sink", "counts=count"), "the job has no such sink"),
    (("--store", "count"), "the job has no such store"),
    (("--page", "nowhere/page.html"), "the page cannot be written"),
    (("--ignore", "value.totl"), r"there is no such field \(field value.totl\)"),
    (("--tolerance", "valeu=1"), "did you mean value"),
])  # fmt: skip
def test_what_is_refused_before_anything_is_replayed(pipeline, tries, monkeypatch, arguments, told) -> None:
    monkeypatch.setattr("hindstream.cli.versions.try_version.begin", None)
    before = paths(pipeline.warehouse)
    with pytest.raises(ConfigurationError, match=told):
        tries("new.py:job", *arguments)
    assert paths(pipeline.warehouse) == before


PAGES = ("/reports/", "/data_docs/")


def test_no_page_is_named_that_goes_with_the_fork(pipeline, tries, caplog) -> None:
    caplog.set_level("INFO")
    tries("new.py:job")
    assert "is commit 1" in caplog.text
    assert not any(page in caplog.text for page in PAGES)
    tries("new.py:job", "--keep", "longer")
    (page,) = re.findall(r"the report of run \S+ is (\S+)", caplog.text)
    assert Path(page).is_file()


def test_a_version_that_fails_its_audit_says_how_to_look_at_it(pipeline, tries, tmp_path) -> None:
    of_one = (
        """expectations={"counts": (expect("expect_column_values_to_be_between", column="value", max_value=1),)})"""
    )
    failing = LONGER.replace("import Job,", "import Job, expect,").replace(
        "builder.build())", f"builder.build(), {of_one}"
    )
    (tmp_path / "failing.py").write_text(failing)
    before = paths(pipeline.warehouse)
    with pytest.raises(InputError, match="the audit failed, 1 of .* with --keep NAME the fork stays") as raised:
        tries("failing.py:job")
    assert not any(page in str(raised.value) for page in PAGES)
    assert paths(pipeline.warehouse) == before
    with pytest.raises(InputError, match="the audit failed") as raised:
        tries("failing.py:job", "--keep", "failing")
    assert Path(raised.value.place["report"]).is_file()


class _Stopped(BaseException):
    """The process ends."""


def ended_process() -> int:
    """The id of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


ARGUMENTS = ("new.py:job", "--against", "old.py:job", "--to", "70000")


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("is_killed", "first", "every"),
    [
        pytest.param(False, 0, 8, id="it cleans up"),
        pytest.param(False, 0, 2, id="it cleans up at every second", marks=pytest.mark.long),
        pytest.param(True, 1, 2, id="the next one cleans up", marks=pytest.mark.long),
        pytest.param(False, 1, 2, id="it cleans up at the others", marks=pytest.mark.long),
        pytest.param(True, 0, 2, id="the next one cleans up at the others", marks=pytest.mark.long),
    ],
)
def test_wherever_it_is_stopped(pipeline, tries, monkeypatch, is_killed, first, every) -> None:
    """At each ``every``th step from ``first`` on, and at all of dropping, after which nothing is left to clean up."""
    before, steps = paths(pipeline.warehouse), []
    with observed(steps.append):
        assert tries(*ARGUMENTS).code == 1
    names = dict.fromkeys(steps)
    assert {name.partition(".")[0] for name in names} >= {"fork", "commit", "drop"}
    gone = ended_process()
    for number, name in enumerate(names):
        if is_killed if name.startswith("drop.") else number % every != first:
            continue
        at = {"is_there": True}

        def stop(passed: str, name: str = name, at: dict[str, bool] = at) -> None:
            if passed == name and at.pop("is_there", False):
                raise _Stopped

        with monkeypatch.context() as patched:
            patched.setattr(forks.os, "getpid", lambda: gone)
            if is_killed:
                patched.setattr(forks, "drop", lambda *_, **__: None)
            with observed(stop), pytest.raises(_Stopped):
                tries(*ARGUMENTS)
        if is_killed or name.startswith("drop."):
            assert tries("old.py:job", "--from", "80000").code == 0
        assert paths(pipeline.warehouse) == before, name


def begun(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The command in a process of its own, as soon as its fork is there; and how that is called."""
    arguments = [sys.executable, "-m", "hindstream", "try", "slow.py:job", "--engine", "local"]
    process = subprocess.Popen(arguments, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"as (try-\w+), ", line):
            return process, found[1]
    raise AssertionError("it has ended before")


@pytest.fixture
def slow(pipeline, tmp_path) -> Pipeline:
    """With a version that takes its time."""
    text = FILE.replace('.stream("views")', '.stream("views").peek(wait)')
    wait = "import time\n\ndef wait(batch):\n    time.sleep(60)\n"
    (tmp_path / "slow.py").write_text(wait + text)
    return pipeline


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_it_cleans_up(slow, tmp_path, number) -> None:
    before = paths(slow.warehouse)
    process, _ = begun(tmp_path)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    assert paths(slow.warehouse) == before


@pytest.mark.slow
def test_what_a_killed_one_has_left_the_next_one_drops(slow, tmp_path, tries) -> None:
    before = paths(slow.warehouse)
    process, name = begun(tmp_path)
    process.kill()
    process.communicate()
    assert forks_of(slow.warehouse, "counting") == (name,)
    result = tries("old.py:job")
    assert f"{name} was left by a command that was killed, and has been dropped." in result.err
    assert paths(slow.warehouse) == before


@pytest.mark.slow
def test_what_a_killed_one_has_left_can_be_dropped(slow, tmp_path) -> None:
    before = paths(slow.warehouse)
    process, name = begun(tmp_path)
    process.kill()
    process.communicate()
    assert command("drop", name, "--yes", cwd=tmp_path).returncode == 0
    assert paths(slow.warehouse) == before


def test_on_spark(spark, pipeline, tries) -> None:
    before = paths(pipeline.warehouse)
    result = tries("new.py:job", "--against", "old.py:job", "--to", "70000", "--engine", "spark", "--output", "json")
    assert result.of_counts() == {"only_a": 0, "only_b": 0, "changed": 1, "equal": 20, "shared": 0}
    of_two_keys = tries("new.py:job", "--sample-keys", "27%", "--engine", "spark", "--output", "json")
    assert of_two_keys.of_counts() == {"only_a": 0, "only_b": 0, "changed": 0, "equal": 20, "shared": 0}
    assert paths(pipeline.warehouse) == before


MANY_KEYS = FILE.replace('"counting"', '"keyed"')


@pytest.fixture
def many_keys(tmp_path) -> Pipeline:
    (tmp_path / "old.py").write_text(MANY_KEYS)
    (tmp_path / "new.py").write_text(MANY_KEYS.replace("seconds=0", "seconds=5"))
    made = Pipeline(tmp_path, load_job(f"{tmp_path}/old.py:job").topology, "keyed")
    records = [(f"k{n % 97}", n, n * 100 - (4_000 if n % 5 == 0 else 0)) for n in range(50, 3_000)]
    made.archive("views", records, (pa.string(), pa.int64()), partitions=2)
    made.run(100_000)
    made.run()
    return made


def test_a_sample_of_the_keys_shows_what_differs_of_these_and_what_it_has_spared(many_keys, tries) -> None:
    assert tries("old.py:job", "--sample-keys", "20%").code == 0
    whole = json.loads(tries("new.py:job", "--output", "json").out)
    found = tries("new.py:job", "--sample-keys", "0.2", "--output", "json", "--limit", "9999")
    some, sample = found.of_counts(), json.loads(found.out)["ledgers"]["sample"]
    (all_of_counts,) = (one["difference"] for one in whole["sinks"] if one["a"] == "counts")
    assert 0 < some["changed"] < all_of_counts["changed"] / 2
    assert sample["taken"] + sample["for_time"] + sample["left_out"] == 2_950
    assert 0.1 < sample["taken"] / 2_950 < 0.3
    assert sample["for_time"] <= sample["taken"] + 2
    text = tries("new.py:job", "--sample-keys", "20%").out
    keys = re.search(r"This compares a sample of 20\.0 % of the keys: (\d+) keys\.", text)
    assert keys is not None
    assert 10 < int(keys[1]) < 30
    assert "nodes took the sample: " in text
    assert "This spared them " in text


def test_a_sample_without_any_key_is_not_taken_for_equal(pipeline, tries) -> None:
    before = paths(pipeline.warehouse)
    with pytest.raises(ConfigurationError, match="nothing was compared") as raised:
        tries("new.py:job", "--sample-keys", "0.0001%")
    assert "take a larger share" in str(raised.value)
    assert paths(pipeline.warehouse) == before


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--sample-keys", "120%"), "120% is no part of the keys"),
        (("--sample-keys", "few"), "few is no part of the keys"),
        (("--sample-keys", "1%", "--keep", "kept"), "goes without --keep"),
        (("--sample-keys", "1%", "--stores"), "goes without --stores"),
    ],
)
def test_a_sample_that_cannot_be(pipeline, tries, options, what) -> None:
    before = paths(pipeline.warehouse)
    with pytest.raises(ConfigurationError, match=what):
        tries("old.py:job", *options)
    assert paths(pipeline.warehouse) == before
