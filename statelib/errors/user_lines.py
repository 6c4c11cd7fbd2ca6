"""Lines of the user's own code: where an error was raised, where a function is defined, where an operator was added."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import sysconfig
import traceback
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_OURS = Path(__file__).parents[1]
_FRAMEWORK = _OURS.with_name("hindstream")
_STANDARD = Path(sysconfig.get_path("stdlib"))
_WITHOUT_CODE = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)
_INSTALLED = {"site-packages", "dist-packages"}


class Line(NamedTuple):
    """A line of a file."""

    file: str
    line: int


def place_in_user_code(error: BaseException, functions: Iterable[object] = ()) -> dict[str, object]:
    """``file`` and ``line`` of the last frame that is neither Hindstream's nor a library's.

    Where there is none (what failed is compiled, or a library's), those where the first of ``functions`` is defined
    that is the user's; empty if none is.
    """
    frames = [
        Line(frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _is_users(frame.f_code.co_filename)
    ]
    return frames[-1]._asdict() if frames else defined_at(functions)


def defined_at(functions: Iterable[object]) -> dict[str, object]:
    """``file`` and ``line`` of the first of these functions that is the user's own; empty if none is."""
    for function in functions:
        code = _code_of(function)
        if code is not None and _is_users(code.co_filename):
            return Line(code.co_filename, code.co_firstlineno)._asdict()
    return {}


def place_beside(line: Line, error: BaseException) -> dict[str, object]:
    """``file`` and ``line`` of an error that no line of the user's own is known of, given the line of his operator.

    Where that is in an installed package, this package is the user's, too: the last line there that has raised it.
    """
    package = _installed_package(Path(line.file))
    cause: BaseException | None = error
    last: Line | None = None
    while cause is not None and package is not None:
        for frame, number in traceback.walk_tb(cause.__traceback__):
            if Path(frame.f_code.co_filename).is_relative_to(package):
                last = Line(frame.f_code.co_filename, number)
        cause = cause.__cause__
    return (last or line)._asdict()


def _installed_package(file: Path) -> Path | None:
    """The outermost package, or the module, of an installed file; None: it is not installed."""
    parts = file.parts
    places = [number for number, part in enumerate(parts) if part in _INSTALLED]
    return Path(*parts[: places[-1] + 2]) if places else None


def calling_line() -> Line | None:
    """The line that has called Hindstream, a job's where it adds an operator; None if there is no such file."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads source files
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith("<"):
        return None
    return Line(frame.f_code.co_filename, frame.f_lineno)


def place_of_call() -> dict[str, object]:
    """``file`` and ``line`` of what has called Hindstream; empty if that is no file's."""
    line = calling_line()
    return {} if line is None else line._asdict()


def place_of_users_call() -> dict[str, object]:
    """The same, but empty if it is a command of Hindstream's or a phase that has called, on behalf of the user."""
    line = calling_line()
    return {} if line is None or Path(line.file).is_relative_to(_FRAMEWORK) else line._asdict()


def _is_ours(frame: FrameType) -> bool:
    """Whether it runs code of Hindstream, or makes one of its dataclasses: code of no file, but of a module."""
    files = (frame.f_code.co_filename, frame.f_globals.get("__file__") or "")
    return files[0] == dataclasses.__file__ or any(map(_is_our_file, files))


@functools.cache
def _is_our_file(filename: str) -> bool:
    """Whether it is in this package; kept, since each step of a topology asks for all frames above it."""
    return Path(filename).is_relative_to(_OURS)


def _code_of(function: Any) -> CodeType | None:
    """The code of a function, however it is wrapped: partial, method, decorator, Numba's, an object that is called."""
    while callable(function) and not isinstance(function, _WITHOUT_CODE):
        match function:
            case FunctionType():
                code: CodeType = inspect.unwrap(function).__code__
                return code
            case functools.partial():
                function = function.func
            case MethodType():
                function = function.__func__
            case type():
                function = vars(function).get("__init__")
            case _:
                inner = getattr(function, "py_func", getattr(function, "__wrapped__", None))
                function = getattr(type(function), "__call__", None) if inner is None else inner  # noqa: B004 - its code
    return None


def _is_users(filename: str) -> bool:
    """Whether it is a Python file, and neither a library's nor Hindstream's.

    Compiled modules name their sources by relative paths, some of which end with ``.py``.
    """
    path = Path(filename)
    if path.suffix != ".py" or not (path.is_absolute() or path.is_file()):
        return False
    is_library = not _INSTALLED.isdisjoint(path.parts) or path.is_relative_to(_STANDARD)
    return not is_library and not _is_our_file(filename)
