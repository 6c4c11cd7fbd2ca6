"""Draws the rooms of the house, by the imports in the code, into ARCHITECTURE.md: ``python -m tests.docs.rooms``.

A room is a folder, or a file beside folders. An arrow says that files of one room import files of another, at the top,
in a function or for types alone. An arrow that others imply is left out (the transitive reduction).
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
_DRAWN = re.compile(r"(?<=<!-- rooms of )(?P<inside>[\w., ]+)( -->\n).*?(?=<!-- end of rooms -->)", re.DOTALL)


@dataclass(frozen=True)
class Code:
    """Python packages, and what their files import of one another.

    Attributes:
        root: The folder that they are in.
        packages: Their names.
    """

    root: Path
    packages: tuple[str, ...]

    @cached_property
    def files(self) -> dict[str, Path]:
        """By the names that they are imported by; that of a folder is its ``__init__``."""
        found = [file.relative_to(self.root) for top in self.packages for file in (self.root / top).rglob("*.py")]
        return {
            ".".join(file.with_suffix("").parts).removesuffix(".__init__"): self.root / file for file in sorted(found)
        }

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """By file, those that it imports. A name that a package only passes on is imported from where it is defined."""
        return {
            name: {
                f"{module}.{what}" if f"{module}.{what}" in self.files else self._home(module, what)
                for module, what in _imported(file, passed_on=False)
                if module in self.files
            }
            for name, file in self.files.items()
        }

    def _home(self, module: str, name: str) -> str:
        passed_on = self._passed_on.get(module, {})
        return (
            self._home(passed_on[name], name) if passed_on.get(name, module) in self.files.keys() - {module} else module
        )

    @cached_property
    def _passed_on(self) -> dict[str, dict[str, str]]:
        return {
            name: {what: module for module, what in _imported(file, passed_on=True)}
            for name, file in self.files.items()
            if file.name == "__init__.py"
        }

    def rooms(self, inside: str) -> dict[str, set[str]]:
        """The rooms of a package or of a room, each with those beside it that it imports."""
        rooms: dict[str, set[str]] = {}
        for module, imported in self.imports.items():
            room = _room(module, inside)
            if room:
                rooms.setdefault(room, set()).update({_room(name, inside) for name in imported} - {room, ""})
        return rooms


def _imported(file: Path, *, passed_on: bool) -> Iterator[tuple[str, str]]:
    """Modules and names of them.

    Args:
        file: A Python file.
        passed_on: What an ``__init__`` offers. False: what a file imports, but of an ``__init__`` nothing that it
            imports for type checkers alone: it offers that, and loads it where it is used.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    offered = {node for top in tree.body if _is_for_types(top) for node in ast.walk(top)}
    if file.name != "__init__.py":
        offered = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and not passed_on:
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and (passed_on or node not in offered):
            yield from ((node.module, alias.name) for alias in node.names)


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _room(module: str, inside: str) -> str:
    """The room that a file is in; empty: it is elsewhere, or a door (``__init__``, ``__main__``)."""
    within = module.removeprefix(f"{inside}.") if module.startswith(f"{inside}.") else ""
    return within.partition(".")[0].removeprefix("__main__")


def reduced(rooms: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The rooms without the arrows that others imply."""
    reach = {room: set(others) for room, others in rooms.items()}
    for between in rooms:
        for others in reach.values():
            others.update(reach[between] if between in others else ())
    return {
        room: {other for other in others if not _is_implied(room, other, rooms, reach)}
        for room, others in rooms.items()
    }


def _is_implied(room: str, other: str, rooms: Mapping[str, set[str]], reach: Mapping[str, set[str]]) -> bool:
    """Whether one between the two imports the other, or one before it in the alphabet that imports it, and it that."""
    return any(
        (other in reach[between] and between not in reach[other])
        if room not in reach[between]
        else between < room and other in rooms[between]
        for between in rooms[room] - {other}
    )


def flowchart(code: Code, *packages: str) -> str:
    """Mermaid's, with a box for each of ``packages``; each stands on the next."""
    lines = ["flowchart TD"]
    for package in packages:
        prefix = package.replace(".", "_")
        rooms = reduced(code.rooms(package))
        lines += [f'  subgraph {prefix}["{package}"]']
        lines += [f"    {prefix}_{room}[{room}]" for room in sorted(rooms)]
        lines += [
            f"    {prefix}_{room} --> {prefix}_{other}" for room in sorted(rooms) for other in sorted(rooms[room])
        ]
        lines += ["  end"]
    boxes = [package.replace(".", "_") for package in packages]
    lines += [f"  {upper} --> {lower}" for upper, lower in pairwise(boxes)]
    return "\n".join(lines)


def drawn(page: str, code: Code) -> str:
    """The page with its drawings made anew, each between ``<!-- rooms of X -->`` and ``<!-- end of rooms -->``."""

    def draw(part: re.Match[str]) -> str:
        return f"{part[1]}{part[2]}```mermaid\n{flowchart(code, *part['inside'].split(', '))}\n```\n"

    return _DRAWN.sub(draw, page)


def house() -> Code:
    """The packages that the wheel installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return Code(ROOT, tuple(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]))


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8"), house()), encoding="utf-8")
