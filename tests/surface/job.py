"""The surface as a job, for what starts jobs by name."""

from __future__ import annotations

from statelib import Job
from tests.surface.topology import surface


def job() -> Job:
    """Every operator there is, in one job."""
    return Job("surface", surface())
