"""Directories that each host has under a name of its own."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from statelib.errors.kinds import ConfigurationError

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def on_this_host(text: str, *, setting: str) -> str:
    """Replaces each ``$NAME`` and ``${NAME}`` by that variable of this process' environment.

    Args:
        text: Such as ``$DISK/hindstream``.
        setting: Whose value it is.

    Raises:
        ConfigurationError: A variable is not set here.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in os.environ:
            what = f"{text} names ${name}, which is not set on {socket.gethostname()}"
            step = f"set {name} in the environment of the driver and of every Spark worker"
            raise ConfigurationError(what, setting=setting, next_step=step)
        return os.environ[name]

    return _VARIABLE.sub(value, text)


def local_state_dir(state_dir: str | Path) -> Path:
    """The setting ``state_dir`` as this host has it, absolute.

    Raises:
        ConfigurationError: It names a variable that is not set here.
    """
    return Path(on_this_host(str(state_dir), setting="state_dir")).absolute()


def for_all_hosts(state_dir: str | Path) -> str:
    """The setting ``state_dir`` as it travels to other hosts: what begins with a variable is completed there."""
    return str(state_dir) if str(state_dir).startswith("$") else str(Path(state_dir).absolute())
