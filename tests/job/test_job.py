"""Jobs are named soundly and found by reference; a wrong reference says how to mend it."""

from __future__ import annotations

import hashlib
import importlib
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from statelib import ConfigurationError, Job, StreamsBuilder, expect, load_job
from statelib.job.user_code import code_digest, code_files, forget_files, is_user_file

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
from statelib import Job, StreamsBuilder

def build():
    builder = StreamsBuilder("copying")
    builder.stream("in").to("out")
    return Job("copying", builder.build())

job = build()
number = 7
"""


def topology():  # type: ignore[no-untyped-def]
    builder = StreamsBuilder("job")
    builder.stream("in").to("out")
    return builder.build()


@pytest.mark.parametrize("attribute", ["", ":job", ":build"])
def test_a_job_is_loaded_from_a_file(tmp_path: Path, attribute: str) -> None:
    path = tmp_path / "my job.py"
    path.write_text(FILE)
    job = load_job(f"{path}{attribute}")
    assert job.name == "copying"
    assert job.topology.sink_topics == ("out",)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no.such.module:job", "no module named no"),
        ("missing.py:job", "no such file"),
        ("statelib.job.job:nothing", "there is no 'nothing' in statelib.job.job"),
        ("../jobs:job", r"'\.\./jobs' is neither a file of Python nor a module"),
        ("", "'' is neither a file of Python nor a module"),
    ],
)
def test_a_wrong_reference_is_explained(reference: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_job(reference)


def test_the_digest_of_the_code_knows_what_a_job_imports(tmp_path: Path) -> None:
    helper = tmp_path / "helper_of_a_job.py"
    (tmp_path / "jobs.py").write_text(f"import helper_of_a_job\n{FILE}")
    digests = []
    for text in ("x = 1", "x = 1", "x = 2"):
        forget_files()
        helper.write_text(text)
        load_job(f"{tmp_path}/jobs.py")
        digests.append(code_digest())
    forget_files()
    assert digests[0] == digests[1] != digests[2]


def test_what_is_no_job_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.py"
    path.write_text(FILE)
    with pytest.raises(ConfigurationError, match="not a job"):
        load_job(f"{path}:number")


def test_names_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="cannot be a job's name"):
        Job("a/b", topology())


def test_expectations_must_be_about_a_topic_of_the_job() -> None:
    known = {"out": (expect("expect_column_values_to_not_be_null", column="key"),)}
    assert Job("job", topology(), known).expectations["out"][0].kwargs == {"column": "key"}
    with pytest.raises(ConfigurationError, match=r"neither reads nor writes.*topic other.*one of: in, out"):
        Job("job", topology(), {"other": ()})


@pytest.mark.parametrize(
    ("expectation", "samples", "message"),
    [
        ("expect_column_values_to_be_unique", {"in": 0.1}, "is about all records.*topic in"),
        ("expect_column_values_to_not_be_null", {"in": 1.0}, "1.0 is no share.*between 0 and 1"),
        ("expect_column_values_to_not_be_null", {"out": 0.1}, "nothing to check a sample for.*topic out"),
    ],
)
def test_samples_are_of_sources_and_of_what_they_can_tell(
    expectation: str, samples: dict[str, float], message: str
) -> None:
    expected = {"in": (expect(expectation, column="key"),)}
    made = Job("job", topology(), expected)
    assert made.expectations["in"][0].severity == "fail"
    assert made.as_fork("new").expectations == expected  # a fork reads what its job reads
    with pytest.raises(ConfigurationError, match=message):
        Job("job", topology(), expected, source_samples=samples)


def written(folder: Path, **files: str) -> Path:
    """Writes modules of these names; the folder's ``job.py`` is what is loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder / "job.py"


COPYING = '"copying"'
JOB = FILE.replace(COPYING, "NAME").replace("from statelib", "from beside import NAME\nfrom statelib")


def test_a_job_imports_the_module_beside_it_and_another_job_its_own(tmp_path: Path) -> None:
    first = written(tmp_path / "first", job=JOB, beside="from package.inner import NAME", package__inner="NAME = 'one'")
    second = written(tmp_path / "second", job=JOB, beside="NAME = 'two'")
    path = sys.path.copy()
    assert [load_job(str(file)).name for file in (first, second, first)] == ["one", "two", "one"]
    assert sys.path == path
    assert is_user_file(sys.modules["beside"])
    assert not is_user_file(sys.modules["statelib"])


def test_a_file_in_a_package_imports_by_relative_names(tmp_path: Path) -> None:
    """Also where another package has the same name, and beside the file by absolute names as a script would."""
    names = (
        "from ..names import PART\nfrom . import other\nimport other as beside\nNAME = PART + other.PART + beside.PART"
    )
    for part in ("one", "two"):
        outer = tmp_path / part / "flights"
        written(outer, names=f"PART = '{part}'")
        written(outer / "jobs", job=f"{names}\n{FILE.replace(COPYING, 'NAME')}", other="PART = '-'")
        for folder in (outer, outer / "jobs"):
            (folder / "__init__.py").touch()
    files = [tmp_path / part / "flights" / "jobs" / "job.py" for part in ("one", "two", "one")]
    assert [load_job(str(file)).name for file in files] == ["one--", "two--", "one--"]
    assert is_user_file(sys.modules["flights.names"])
    assert is_user_file(sys.modules["flights.jobs.other"])


@pytest.mark.parametrize("name", ["string", "statistics", "rich", "numba"])
def test_a_module_beside_the_job_is_not_named_like_another_one(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, job="\nimport beside\n", beside=f"def late():\n    import {name}\n", **{name: "x = 1"})
    message = rf"{tmp_path}/{name}\.py has the name of a module of Python's, or of an installed one .*line 2.*rename it"
    with pytest.raises(ConfigurationError, match=message):
        load_job(str(file))


def test_what_lies_beside_the_job_and_is_not_imported_has_any_name(tmp_path: Path) -> None:
    file = written(tmp_path, job=FILE, string="raise RuntimeError", rich="raise RuntimeError")
    assert load_job(str(file)).name == "copying"


def test_what_is_imported_when_the_job_is_made_lies_beside_it_too(tmp_path: Path) -> None:
    late = FILE.replace('    builder.stream("in")', "    import late\n    builder.stream(late.TOPIC)")
    file = written(tmp_path, job=late.replace("\njob = build()\n", ""), late="TOPIC = 'in'")
    assert load_job(f"{file}:build").topology.sink_topics == ("out",)


@pytest.mark.parametrize(
    ("files", "message", "place"),
    [
        ({"job": "x = 1\ndef f(:\n"}, "SyntaxError", ("job.py", 2)),
        ({"job": "\n\n1 / 0\n"}, "ZeroDivisionError: division by zero", ("job.py", 3)),
        ({"job": "import nothing_of_that_name\n"}, "No module named 'nothing_of_that_name'", ("job.py", 1)),
        ({"job": "import beside\n", "beside": "\nno_such_name\n"}, "NameError", ("beside.py", 2)),
        ({"job": "def job():\n    return {}['x']\n"}, "KeyError: 'x'", ("job.py", 2)),
        ({"job": "import sys\nsys.exit(3)\n"}, "SystemExit: 3", ("job.py", 2)),
        ({"job": "import json\n\njson.loads('{')\n"}, "JSONDecodeError", ("job.py", 3)),
        ({"job": "from statelib import Job\nJob('a b', None)\n"}, "not None", ("job.py", 2)),
        ({"job": FILE.replace('"in"', '""')}, "name", ("job.py", 6)),
    ],
)
def test_an_error_of_the_file_has_its_line(
    tmp_path: Path, files: dict[str, str], message: str, place: tuple[str, int]
) -> None:
    file = written(tmp_path, **files)
    with pytest.raises(ConfigurationError, match=message) as raised:
        load_job(str(file))
    assert (raised.value.place["file"], raised.value.place["line"]) == (str(tmp_path / place[0]), place[1])


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("\n\n1 / 0\n", "ZeroDivisionError: division by zero", 3),
        ("x = 1\ndef f(:\n", "SyntaxError", 2),
        ("import nothing_of_that_name\n", "No module named 'nothing_of_that_name'", 1),
        ("from statelib import Job\nJob('a b', None)\n", "not None", 2),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3", 2),
    ],
)
@pytest.mark.parametrize("name", ["its_module", "its_package.module", "its_package"])
def test_an_error_of_a_module_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str, line: int
) -> None:
    """Also where it is the package that raises it, whichever module of it is asked for."""
    file = tmp_path / (f"{name}.py" if name == "its_module" else "its_package/__init__.py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigurationError, match=message) as raised:
        load_job(f"{name}:job")
    assert (raised.value.place["file"], raised.value.place["line"]) == (str(file), line)
    assert raised.value.next_step


def test_a_file_is_loaded_once_it_is_mended(tmp_path: Path) -> None:
    file = written(tmp_path, job="1 / 0")
    with pytest.raises(ConfigurationError, match="ZeroDivisionError"):
        load_job(str(file))
    file.write_text(FILE)
    assert load_job(str(file)).name == "copying"


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    file = written(tmp_path, job=FILE)
    with pytest.raises(ConfigurationError, match=r"there is no 'biuld' in .*job\.py.*did you mean build\?"):
        load_job(f"{file}:biuld")
    with pytest.raises(ConfigurationError, match="there is no 'zzz' .*Next: it has build, job, number$"):
        load_job(f"{file}:zzz")


def test_a_job_owns_what_somebody_has_imported_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's DAG file, for one, from the same folder; of a package too, and what that imports by relative names."""
    text = "import early.names\nfrom early.inner import NAME\nfrom statelib"
    job = written(
        tmp_path / "a",
        job=FILE.replace(COPYING, "NAME").replace("from statelib", text),
        early__names="NAME = 'early'",
        early__inner="from . import names\nfrom .names import NAME",
        unrelated="",
    )
    monkeypatch.syspath_prepend(str(job.parent))
    early = importlib.import_module("early.inner")
    importlib.import_module("unrelated")
    before = code_digest()
    assert load_job(str(job)).name == "early"
    assert sys.modules["early.inner"] is early
    owned = [name for name in ("early.inner", "early.names", "unrelated") if is_user_file(sys.modules[name])]
    assert owned == ["early.inner", "early.names"]
    assert code_digest() != before
    assert sorted(code_files(str(job))) == ["early/inner.py", "early/names.py", "job.py"]


def test_the_files_of_a_job_have_the_same_names_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"job": JOB, "beside": "from package.inner import NAME", "package__inner": "NAME = 'one'"}
    one, other = (written(tmp_path / folder, **files) for folder in ("one", "other"))
    for job in (one, other):
        load_job(f"{job}:job")
    assert code_files(f"{other}:job") == {
        name: hashlib.sha256((other.parent / name).read_bytes()).hexdigest()
        for name in ("job.py", "beside.py", "package/inner.py")
    }
    assert code_files(f"{tmp_path}/none.py:job") == {}
    within = tmp_path / "jobs.zip"
    with zipfile.ZipFile(within, "w") as archive:
        archive.writestr("zipped/__init__.py", "")
        archive.writestr("zipped/job.py", FILE)
    monkeypatch.syspath_prepend(str(within))
    before = code_digest()
    load_job("zipped.job:job")
    of_file = hashlib.sha256(FILE.encode()).hexdigest()
    assert code_files("zipped.job:job") == {"zipped": hashlib.sha256(b"").hexdigest(), "zipped.job": of_file}
    assert code_digest() != before
