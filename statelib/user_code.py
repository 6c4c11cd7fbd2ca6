"""The user's own Python: jobs and topics are named by their places, as ``FILE.py:NAME`` or ``PACKAGE.MODULE:NAME``."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statelib.errors import ConfigurationError

if TYPE_CHECKING:
    from types import ModuleType

_FILE_MODULE = "hindstream_job_"
"""How the name of a module begins that was loaded from a file."""


def load_attribute(reference: str, default: str) -> Any:
    """What ``package.module:attribute`` or ``path/to/file.py:attribute`` names; of a function, what it gives.

    Args:
        reference: Where it is.
        default: The attribute, where the reference names none.

    Returns:
        It, or None where the module has no such attribute.

    Raises:
        ConfigurationError: There is no such module or file.
    """
    place, _, attribute = reference.partition(":")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    found = getattr(module, attribute or default, None)
    return found() if callable(found) else found


def is_user_file(module: ModuleType) -> bool:
    """Whether `load_attribute` has loaded the module from a file: no other process can import it by its name."""
    return module.__name__.startswith(_FILE_MODULE)


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        next_step = "check the name, or give the file: path/to/file.py:NAME"
        raise ConfigurationError(f"no module named {error.name}", reference=name, next_step=next_step) from error


def _load_file(path: Path) -> ModuleType:
    """Loads a file under a name made from its path, once a process."""
    path = path.resolve()
    name = _FILE_MODULE + re.sub(r"\W", "_", str(path))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigurationError("there is no such file", file=path, next_step="check the path of the job's file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
