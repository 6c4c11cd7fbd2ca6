"""Where the values of settings come from: the command line, the environment, a file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    SettingsError,
    TomlConfigSettingsSource,
)

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX = "HINDSTREAM_"
FILE_NAME = "hindstream.toml"
COMMAND_LINE = "command line"
TASK_ARGUMENTS = "arguments of the task"
"""What has given settings, for errors: a command, or the task of a scheduler."""

NOT_SETTINGS = frozenset({
    "HINDSTREAM_AIRFLOW_HOME", "HINDSTREAM_CONFIG", "HINDSTREAM_JAVA", "HINDSTREAM_PYTHON", "HINDSTREAM_TEST_WORKERS",
})  # fmt: skip
"""Variables with the prefix that say something to the ``dev`` script, or where the file is (``HINDSTREAM_CONFIG``)."""


def given_settings(
    model: type[BaseSettings],
    command_line: Mapping[str, object],
    environ: Mapping[str, str],
    file: Path | None,
    given_by: str = COMMAND_LINE,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that settings are given, and where each is from, by name; the first place that has one counts.

    Args:
        model: The settings.
        command_line: By name of the setting; None as a value: not given.
        environ: Environment variables.
        file: See `statelib.settings.settings.load_settings`.
        given_by: See there.

    Raises:
        ConfigurationError: An unknown setting, or a file that is not there or no TOML.
    """
    path = _settings_file(environ, file)
    sources: list[tuple[str, dict[str, Any]]] = [
        (given_by, _from_command_line(model, command_line, given_by)),
        ("environment", _from_environment(model, environ)),
        (f"file {path}", _from_file(model, path) if path else {}),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, found in sources:
        for name, value in found.items():
            if name not in values:
                values[name] = value
                origins[name] = f"environment {PREFIX}{name.upper()}" if origin == "environment" else origin
    return values, origins


def check_names(model: type[BaseSettings], names: Iterable[str], *, place: str, besides: Iterable[str] = ()) -> None:
    """Refuses what is no setting.

    Args:
        model: The settings.
        names: What is given.
        place: Where, for the error.
        besides: What else could be given there, and may have been meant.

    Raises:
        ConfigurationError: A name is none of a setting.
    """
    for name in names:
        if name not in model.model_fields:
            step = did_you_mean(name, [*model.model_fields, *besides], "the settings are:")
            raise ConfigurationError(f"there is no setting {name}", place=place, next_step=step)


class _Environment(EnvSettingsSource):
    """Reads a given mapping instead of the process' environment."""

    def __init__(self, model: type[BaseSettings], environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(model)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._environ.items()}


def _from_command_line(model: type[BaseSettings], command_line: Mapping[str, object], given_by: str) -> dict[str, Any]:
    given = {name: value for name, value in command_line.items() if value is not None}
    for name in given:
        place = f"{given_by} --{name.replace('_', '-')}" if given_by == COMMAND_LINE else given_by
        check_names(model, [name], place=place)
    return dict(InitSettingsSource(model, given)())


def _from_environment(model: type[BaseSettings], environ: Mapping[str, str]) -> dict[str, Any]:
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and variable not in NOT_SETTINGS:
            check_names(model, [variable.removeprefix(PREFIX).lower()], place=f"environment {variable}")
    try:
        return dict(_Environment(model, environ)())
    except SettingsError as error:
        names = [name for name in model.model_fields if f'"{name}"' in str(error)]
        variable = PREFIX + (names[0].upper() if names else "*")
        raise ConfigurationError(
            "the value is not JSON",
            setting=f"environment {variable}",
            next_step=f'write {variable}=\'{{"name": "value"}}\'',
        ) from None


def _from_file(model: type[BaseSettings], path: Path) -> dict[str, Any]:
    try:
        source = TomlConfigSettingsSource(model, toml_file=path)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the settings file is not TOML: {error}", file=path) from None
    check_names(model, source.toml_data, place=f"file {path}")
    return dict(source())


def _settings_file(environ: Mapping[str, str], file: Path | None) -> Path | None:
    named = file or (Path(environ["HINDSTREAM_CONFIG"]) if environ.get("HINDSTREAM_CONFIG") else None)
    path = named or Path(FILE_NAME)
    if path.is_file():
        return path
    if named:
        raise ConfigurationError("there is no such settings file", file=path, next_step="check the path")
    return None
