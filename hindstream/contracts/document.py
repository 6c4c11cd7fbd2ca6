"""Files of contracts: read into the standard's own model in Python, and written from it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from pydantic import BaseModel

API_VERSION = "v3.1.0"
"""Of the standard, in contracts that are written: nothing in them is newer."""


def model() -> ModuleType:
    """The model.

    Raises:
        ConfigurationError: It is not installed.
    """
    try:
        return import_module("open_data_contract_standard.model")
    except ImportError as error:
        what, step = "the model of data contracts is not installed", "pip install 'hindstream[contracts]'"
        raise ConfigurationError(what, package="open-data-contract-standard", next_step=step) from error


def read_contract(path: Path) -> tuple[Any, list[str]]:
    """A contract, and the places in it that the standard does not know: a misspelled rule must not pass in silence.

    Raises:
        ConfigurationError: There is no such file, it is no contract of version 3, or the model is not installed.
    """
    import yaml  # noqa: PLC0415 - comes with the model

    of, step = model(), "give a contract of the Open Data Contract Standard, version 3 (https://bitol.io)"
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        what = f"the contract cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ConfigurationError(what, file=path, next_step="check the path") from error
    except yaml.YAMLError as error:
        what = f"the contract is no YAML: {' '.join(str(error).split())}"
        raise ConfigurationError(what, file=path, next_step=step) from error
    if not isinstance(raw, dict) or raw.get("kind") != "DataContract":
        raise ConfigurationError(
            "the file is no data contract: its kind is not DataContract", file=path, next_step=step
        )
    if not str(raw.get("apiVersion", "")).startswith("v3."):
        what = f"the contract is of version {raw.get('apiVersion')} of the standard"
        raise ConfigurationError(what, file=path, next_step=step)
    try:
        return of.OpenDataContractStandard(**raw), list(_unknown(raw, of.OpenDataContractStandard, ""))
    except (TypeError, ValueError) as error:
        what = f"the file is no data contract: {' '.join(str(error).split())}"
        raise ConfigurationError(what, file=path, next_step=step) from error


def _unknown(raw: Any, of: type[BaseModel], place: str) -> Iterator[str]:
    """The keys that the model leaves out, by their places; names stand in for numbers where there are names."""
    fields = {field.alias or name: field.annotation for name, field in of.model_fields.items()}
    for key, value in raw.items() if isinstance(raw, dict) else ():
        at = f"{place}.{key}" if place else str(key)
        if key not in fields:
            yield at
            continue
        inner = _inner(fields[key])
        for number, entry in enumerate(value if isinstance(value, list) else [value]):
            named = entry.get("name") or entry.get("id") if isinstance(entry, dict) else None
            where = f"{at}[{named or number}]" if isinstance(value, list) else at
            if inner is not None:
                yield from _unknown(entry, inner, where)


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model of an annotation such as ``list[Model] | None``."""
    from pydantic import BaseModel  # noqa: PLC0415

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((inner for part in get_args(annotation) if (inner := _inner(part)) is not None), None)
