"""Every public name says what it is and where it comes from: the KIP, or Kafka's own name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import hindstream
from tests.conftest import ROOT

OURS = {
    # Hindstream's own: how a job, a mapper and an aggregation are written, and what goes wrong.
    "Aggregation", "BackfillResult", "ConfigurationError", "CorruptedDataError", "Expectation", "FencedError",
    "HindstreamError", "InputError", "InternalError", "Job", "JsonSerde", "RetryableError", "RunResult", "Settings",
    "Storage", "TestRecord", "TopicArchive", "append_records", "approx_count_distinct", "arg_max", "arg_min",
    "backfill", "collect_list", "collect_set", "contract", "count", "count_distinct",
    "describe", "expect", "export_changelog", "first", "import_changelog",
    "last", "load_job", "load_settings", "max_", "mean_", "min_", "open_state", "per_record", "quantiles",
    "read", "run", "stddev", "sum_", "top_n", "topic_schema", "variance",
}  # fmt: skip


@pytest.mark.parametrize("name", hindstream.__all__)
def test_a_public_name_has_a_docstring_with_its_source(name: str) -> None:
    text = inspect.getdoc(getattr(hindstream, name))
    assert text
    assert name in OURS or re.search(r"Kafka|KIP-\d+", text), text


@pytest.mark.parametrize("name", [name for name in hindstream.__all__ if inspect.isclass(getattr(hindstream, name))])
def test_a_public_method_has_a_docstring(name: str) -> None:
    members = inspect.getmembers(
        getattr(hindstream, name), lambda member: inspect.isroutine(member) or isinstance(member, property)
    )
    own = [(of, member) for of, member in members if not of.startswith("_") and "statelib" in _module(member)]
    assert [of for of, member in own if not inspect.getdoc(member)] == []


def _module(member: object) -> str:
    return str(getattr(getattr(member, "fget", member), "__module__", "") or "")


def test_nothing_is_offered_that_is_not_there() -> None:
    assert sorted(hindstream.__all__) == list(hindstream.__all__)
    assert set(hindstream.__all__) >= OURS


FACES = tuple(f"hindstream{face}" for face in ("", ".airflow", ".kafka", ".report", ".spark", ".testing"))


@pytest.mark.parametrize("face", FACES)
def test_a_package_offers_what_it_lists(face: str) -> None:
    package = importlib.import_module(face)
    assert [name for name in package.__all__ if not inspect.getdoc(getattr(package, name))] == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_that_name'"):
        _ = package.nothing_of_that_name


@pytest.mark.parametrize("face", [*FACES, "statelib"])
def test_help_and_completion_show_what_a_package_offers_before_it_is_loaded(face: str) -> None:
    code = f"import {face} as face; print([name for name in face.__all__ if name not in dir(face)])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize("face", [*FACES, "statelib"])
def test_no_module_has_the_name_of_what_its_package_offers(face: str) -> None:
    package = importlib.import_module(face)  # importing such a module would put it in the place of the name
    modules = {module.name for module in pkgutil.iter_modules(getattr(package, "__path__", ()))}
    assert modules.isdisjoint(package.__all__)


@pytest.mark.parametrize("face", ["airflow", "kafka"])
def test_without_what_a_package_needs_it_names_the_extra(face: str) -> None:
    bare = [sys.executable, "-S", "-c", f"import hindstream.{face}"]  # with Python's own modules and these alone
    environ = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(bare, env=environ, cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stderr.splitlines()[-1]
    assert said.startswith("statelib.errors.kinds.ConfigurationError: ")
    assert said.endswith(f"Next: pip install 'hindstream[{face}]'")


def test_hindstream_says_its_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", hindstream.__version__)


@pytest.mark.parametrize("face", FACES)
def test_importing_a_package_pulls_in_nothing_heavy(face: str) -> None:
    heavy = "airflow confluent_kafka deltalake great_expectations numba numpy pandas pyarrow pydantic pyspark rocksdict"
    code = f"import sys, {face}; print([name for name in {heavy.split()} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
