"""Which names jobs can have."""

from __future__ import annotations

import re

from statelib.errors.kinds import ConfigurationError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_job_name(name: str) -> None:
    """Looks whether a job can be called that.

    Raises:
        ConfigurationError: It cannot.
    """
    if not _NAME.fullmatch(name):
        next_step = "use letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100"
        raise ConfigurationError("this cannot be a job's name", job=name, next_step=next_step)
