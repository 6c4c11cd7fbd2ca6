"""The demo's pipeline without what the audit expects of New York: the generated airports have other names."""

from __future__ import annotations

from dataclasses import replace

from hindstream.demo.job import job as demo_job
from statelib import Job, expect


def job() -> Job:
    """The demo's topology."""
    between = "expect_column_values_to_be_between"
    expectations = (
        expect("expect_column_values_to_not_be_null", column="key.key"),
        expect(between, column="value.flights", min_value=1),
        expect(between, column="value.max_delay", min_value=-60, max_value=24 * 60),
    )
    return replace(demo_job(), expectations={"delays-by-hour": expectations})
