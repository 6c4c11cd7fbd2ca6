"""The user's own Python: jobs and topics are named by their places, as ``FILE.py:NAME`` or ``PACKAGE.MODULE:NAME``.

A file may import what lies beside it, as a script may: while it is loaded, its folder is the first on ``sys.path``.
Modules that come from there are the file's own. The next file from another folder does not see them, and gets its own
of the same name. A file in a package may import the package's modules, by relative names too, and these are its own.

What the file imports from beside it is its own also where somebody has imported it before, such as Airflow's DAG file.

A module beside it that has the name of one of Python's or of an installed one is refused: which of them an import means
would depend on what has been imported before.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError, HindstreamError
from statelib.errors.user_lines import place_in_user_code

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE_MODULE = "hindstream_job_"
"""How the name of a module begins that was loaded from a file."""

_FOLDER = "__hindstream_folder__"
"""In a module that was loaded from a file or comes from beside one: the file's folder, or its outermost package's."""

_named: set[str] = set()
"""The outermost packages of modules that were named by name."""


def load_attribute(reference: str, default: str) -> Any:
    """What ``package.module:attribute`` or ``path/to/file.py:attribute`` names; of a function, what it gives.

    Args:
        reference: Where it is.
        default: The attribute, where the reference names none.

    Raises:
        ConfigurationError: There is no such module, file or attribute, or the user's code has raised an error.
        HindstreamError: The user's code has raised it; its place has the file and line where.
    """
    place, _, attribute = reference.partition(":")
    attribute = attribute or default
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    if not hasattr(module, attribute):
        names = [name for name, value in vars(module).items() if not name.startswith("_") and _is_own(value, module)]
        step = did_you_mean(attribute, names, "it has")
        raise ConfigurationError(f"there is no {attribute!r} in {place}", reference=reference, next_step=step)
    found = getattr(module, attribute)
    if not callable(found):
        return found
    with _beside(module), _errors_told(Path(module.__file__ or place)):
        return found()


def is_user_file(module: ModuleType | None) -> bool:
    """Whether the module was loaded from a file or comes from beside one: no other process can import it by name.

    Args:
        module: As `sys.modules` has it; None: it cannot be imported.
    """
    return module is not None and _FOLDER in vars(module)


def code_digest() -> str:
    """A digest of the user's files that are loaded: those of jobs and topics, what lies beside them, their packages."""
    own = [module for name, module in list(sys.modules.items()) if is_user_file(module) or _outermost(name) in _named]
    digest = hashlib.sha256()
    for file, content in sorted({(str(module.__file__), _digest(module)) for module in own if _file(module)}):
        digest.update(f"{Path(file).name}\n{content}\n".encode())
    return digest.hexdigest()


def code_files(reference: str) -> dict[str, str]:
    """What the code of a job is made of, to compare it with that of another host.

    Args:
        reference: As `load_attribute` has loaded it.

    Returns:
        The SHA-256 of each file that is loaded, in hex. Of ``FILE.py:NAME``, by the paths of the file and of what it
        imports from beside it, as seen from their folder; of ``PACKAGE.MODULE:NAME``, by the names of the modules of
        the package. Nothing, if the reference was not loaded.
    """
    place = reference.partition(":")[0]
    if not place.endswith(".py"):
        own = [(name, module) for name, module in list(sys.modules.items()) if _outermost(name) == _outermost(place)]
        return {name: _digest(module) for name, module in own if _file(module)}
    loaded = sys.modules.get(_module_name(Path(place).resolve()))
    if loaded is None:
        return {}
    folder: Path = getattr(loaded, _FOLDER)
    files = [module for module in list(sys.modules.values()) if getattr(module, _FOLDER, None) == folder]
    return {Path(file).relative_to(folder).as_posix(): _digest(each) for each in files if (file := _file(each))}


def forget_files() -> None:
    """Has files of the user's loaded anew when they are named next: who works in a notebook edits them meanwhile."""
    for name in [name for name, module in sys.modules.items() if is_user_file(module)]:
        del sys.modules[name]


def _file(module: ModuleType) -> str | None:
    """What a module was loaded from; it may be within an archive."""
    return getattr(module, "__file__", None)


def _digest(module: ModuleType) -> str:
    """The SHA-256 of the file of a module, in hex; of one that is there no more, that of nothing."""
    content, read = b"", getattr(getattr(module, "__loader__", None), "get_data", None)
    with suppress(OSError):
        content = b"" if read is None else read(_file(module))
    return hashlib.sha256(content).hexdigest()


def _outermost(module: str) -> str:
    return module.partition(".")[0]


def _is_own(value: object, module: ModuleType) -> bool:
    """Whether something in a module is its own, and not what it has imported."""
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return value.__module__ == module.__name__
    return not isinstance(value, ModuleType)


def _load_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        step = "name FILE.py:NAME or PACKAGE.MODULE:NAME"
        raise ConfigurationError(f"{name!r} is neither a file of Python nor a module", next_step=step)
    with _errors_told(None):
        try:
            _named.add(_outermost(name))
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # it is there, and imports something that is not
            next_step = "check the name, or give the file: path/to/file.py:NAME"
            raise ConfigurationError(f"no module named {error.name}", reference=name, next_step=next_step) from error


def _load_file(path: Path) -> ModuleType:
    """Loads a file under a name made from its path, once a process."""
    path = path.resolve()
    packages, name = _packages_around(path), _module_name(path)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigurationError("there is no such file", file=path, next_step="check the path of the job's file")
    module = importlib.util.module_from_spec(spec)
    is_installed = not packages or _is_found_elsewhere(packages[0].name, besides=None)
    setattr(module, _FOLDER, path.parent if is_installed else packages[0])
    _check_names_beside(path)
    sys.modules[name] = module
    try:
        with _beside(module), _errors_told(path):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_name(path: Path) -> str:
    folders = [folder.name for folder in _packages_around(path)]
    return ".".join([*folders, _FILE_MODULE + re.sub(r"\W", "_", str(path))])


def _packages_around(path: Path) -> list[Path]:
    """The folders of the packages that a file is in, the outermost first."""
    folders: list[Path] = []
    for folder in path.parents:
        if not (folder / "__init__.py").is_file() or not folder.name.isidentifier():
            break
        folders.insert(0, folder)
    return folders


def _check_names_beside(path: Path) -> None:
    """Looks at what a file imports from beside it, and at what that imports.

    Raises:
        ConfigurationError: Something has the name of a module of Python's or of an installed one.
    """
    seen, left = set(), [path]
    while left:
        for name, line in _outermost_imports(file := left.pop()):
            found = [path.parent / f"{name}.py", path.parent / name / "__init__.py"]
            beside = next((place for place in found if place.is_file()), None)
            if beside is None or name in seen:
                continue
            if _is_found_elsewhere(name, besides=path.parent):
                what = f"{beside} has the name of a module of Python's, or of an installed one"
                step = "rename it: which of them is imported would depend on what was imported before"
                raise ConfigurationError(what, next_step=step, file=file, line=line)
            seen.add(name)
            left.append(beside)


def _imports(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """What a file imports; of one that is no Python none."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]


def _outermost_imports(file: Path) -> list[tuple[str, int]]:
    """The outermost names of the modules that a file imports by absolute names, and in which lines."""
    found: list[tuple[str, int]] = []
    for node in _imports(file):
        if isinstance(node, ast.Import):
            found += [(_outermost(alias.name), node.lineno) for alias in node.names]
        elif node.module and not node.level:
            found.append((_outermost(node.module), node.lineno))
    return found


def _imported(module: ModuleType) -> list[ModuleType]:
    """The modules that a module's file imports, and the packages around them."""
    names: set[str] = set()
    for node in _imports(Path(getattr(module, "__file__", None) or "")):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
            continue
        place = "." * node.level + (node.module or "")
        if node.level:
            try:
                place = importlib.util.resolve_name(place, module.__package__ or "")
            except ImportError:
                continue
        names.update([place, *(f"{place}.{alias.name}" for alias in node.names)])
    for name in list(names):
        parts = name.split(".")
        names.update(".".join(parts[:n]) for n in range(1, len(parts)))
    return [sys.modules[name] for name in sorted(names) if name in sys.modules]


def _is_found_elsewhere(name: str, *, besides: Path | None) -> bool:
    """Whether Python has a module of that name, or finds one that is not in the folder ``besides``."""
    if name in sys.stdlib_module_names:
        return True
    places = [place for place in sys.path if besides is None or Path(place).resolve() != besides]
    spec = PathFinder.find_spec(name, places)
    return spec is not None and spec.origin is not None


@contextmanager
def _beside(module: ModuleType) -> Iterator[None]:
    """While the code of a file runs: modules in its folder can be imported, and are marked as the file's own."""
    folder: Path | None = getattr(module, _FOLDER, None)
    if folder is None:
        yield
        return
    for name, other in list(sys.modules.items()):
        if _FILE_MODULE not in name and getattr(other, _FOLDER, folder) != folder:
            del sys.modules[name]
    before = set(sys.modules)
    file = Path(module.__file__ or folder)
    places = [str(file.parent), *(str(packages[0].parent) for packages in [_packages_around(file)] if packages)]
    sys.path[:0] = places
    importlib.invalidate_caches()  # the file may have been written a moment ago
    try:
        yield
    finally:
        for place in places:
            sys.path.remove(place)
        for name in sys.modules.keys() - before:
            _mark(sys.modules[name], folder)
        _mark_imported(module, folder)


def _mark(module: ModuleType, folder: Path) -> None:
    """Marks a module that comes from the folder, but is not installed there."""
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if file is not None and Path(file).is_relative_to(folder) and "site-packages" not in Path(file).parts:
        setattr(module, _FOLDER, folder)


def _mark_imported(module: ModuleType, folder: Path) -> None:
    """Marks what a file imports from its folder, and somebody else has imported before."""
    seen: set[str] = set()
    left = [module]
    while left:
        for other in _imported(left.pop()):
            _mark(other, folder)
            if is_user_file(other) and other.__name__ not in seen:
                seen.add(other.__name__)
                left.append(other)


@contextmanager
def _errors_told(file: Path | None) -> Iterator[None]:
    """Says where an error of the user's code comes from: the last line that is in the file's folder; None: any."""
    try:
        yield
    except MemoryError:
        raise
    except HindstreamError as error:
        place = {**_place(error, file), **error.place}
        raise type(error)(error.what, next_step=error.next_step, **place) from error
    except (Exception, SystemExit) as error:
        what = f"the {'module' if file is None else 'file'} cannot be loaded: {type(error).__name__}: {_text(error)}"
        step = "fix the line; its traceback: hindstream --debug"
        raise ConfigurationError(what, next_step=step, **_place(error, file)) from error


def _text(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _place(error: BaseException, file: Path | None) -> dict[str, object]:
    if isinstance(error, SyntaxError) and error.filename is not None:
        return {"file": error.filename, "line": error.lineno}
    if file is None:
        return place_in_user_code(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(file.parent)]
    return {"file": own[-1].filename, "line": own[-1].lineno} if own else {"file": file}
