"""The surface and what is beside it as jobs, for what starts jobs by name."""

from __future__ import annotations

from statelib import Job
from tests.surface.beside import beside
from tests.surface.topology import surface


def job() -> Job:
    """Every operator there is, in one job."""
    return Job("surface", surface())


def job_beside() -> Job:
    """The one beside it, with circles and processors by name."""
    return Job("beside", beside())
