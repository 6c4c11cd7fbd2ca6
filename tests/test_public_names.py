"""Every public name says what it is and where it comes from: the KIP, or Kafka's own name."""

from __future__ import annotations

import inspect
import re

import pytest

import statelib

OURS = {
    # Hindstream's own: how a job, a mapper and an aggregation are written, and what goes wrong.
    "Aggregation", "ConfigurationError", "CorruptedDataError", "Expectation", "FencedError", "HindstreamError",
    "InputError", "InternalError", "Job", "JsonSerde", "RetryableError", "TestRecord", "count", "describe", "expect",
    "export_changelog", "load_job", "max_", "mean_", "min_", "open_state", "per_record", "sum_",
}  # fmt: skip


@pytest.mark.parametrize("name", statelib.__all__)
def test_a_public_name_has_a_docstring_with_its_source(name: str) -> None:
    text = inspect.getdoc(getattr(statelib, name))
    assert text
    assert name in OURS or re.search(r"Kafka|KIP-\d+", text), text


@pytest.mark.parametrize("name", [name for name in statelib.__all__ if inspect.isclass(getattr(statelib, name))])
def test_a_public_method_has_a_docstring(name: str) -> None:
    members = inspect.getmembers(
        getattr(statelib, name), lambda member: inspect.isroutine(member) or isinstance(member, property)
    )
    own = [(of, member) for of, member in members if not of.startswith("_") and "statelib" in _module(member)]
    assert [of for of, member in own if not inspect.getdoc(member)] == []


def _module(member: object) -> str:
    return str(getattr(getattr(member, "fget", member), "__module__", "") or "")


def test_nothing_is_offered_that_is_not_there() -> None:
    assert sorted(statelib.__all__) == list(statelib.__all__)
    assert set(statelib.__all__) >= OURS
