"""Writes the files of a project. None that is there is written over."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hindstream.projects.sample_files import sample_files
from hindstream.projects.shape import example_shape
from hindstream.projects.source_text import declared_type, literal
from hindstream.projects.template_texts import aggregation_texts, deduplication_texts, table_texts
from statelib.errors.kinds import ConfigurationError
from statelib.job.lake_topic import LakeTopic
from statelib.settings.value_sources import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from hindstream.projects.shape import Choice, Shape

Template = Literal["aggregation", "deduplication", "table"]

TEMPLATES: dict[Template, str] = {
    "aggregation": "records of each key counted and added up in windows",
    "deduplication": "each event once",
    "table": "rows of a table as they are, counted and added up",
}

SAMPLE_DECLARATION: dict[str, object] = {
    "source": "data/*.csv",
    "key": "country",
    "timestamp": "ordered_at",
    "on_bad_record": "quarantine",
}
"""How the files of a project without a topic are loaded."""

_CHOICES: dict[Template, tuple[Choice, ...]] = {
    "aggregation": ("group", "places", "number", "repeats", "times"),
    "deduplication": ("places", "id"),
    "table": ("table", "category", "places", "number"),
}
"""What a template needs."""

_TEXTS: dict[Template, Callable[[Shape], dict[str, Any]]] = {
    "aggregation": aggregation_texts,
    "deduplication": deduplication_texts,
    "table": table_texts,
}

_SCHEME = re.compile(r"[a-z0-9+]{2,}:")
"""Of URLs, and of tables and queries: ``s3://``, ``delta:``."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Project:
    """A project that was made.

    Attributes:
        folder: Where.
        files: What was written, below it.
        template: What the job does.
        job: The job's name.
        reference: How commands name it, in the folder.
        topic: What it reads.
        sink: What it writes.
        reasons: Why it is as it is, a sentence each.
        has_sample: Whether it has files of its own to load.
        lake: How commands name the declaration of the topic's files; None: it does not come from files.
    """

    folder: Path
    files: tuple[str, ...]
    template: Template
    job: str
    reference: str
    topic: str
    sink: str
    reasons: tuple[str, ...]
    has_sample: bool
    lake: str | None


def make_project(
    folder: Path,
    template: Template | None,
    shape: Shape | None = None,
    *,
    warehouse: str | None = None,
    taken: Collection[str] = (),
    declaration: Mapping[str, object] | None = None,
) -> Project:
    """Makes a project.

    Args:
        folder: Where; made if it is not there. Settings that are there stay.
        template: What the job does; None: ``table`` where the topic is one, else ``aggregation``.
        shape: Of the topic that it reads; None: the project has a topic of its own, of made-up orders.
        warehouse: Where the topic is; None: in the project.
        taken: Names of jobs and topics that are there already.
        declaration: How the topic is loaded from files, by the names of the options of `hindstream.LakeTopic`; None:
            it comes from elsewhere.

    Raises:
        ConfigurationError: One of the files is there already, or the folder cannot be written; nothing is written over.
            Or the topic has no keys, and a table is asked for.
    """
    of = shape or example_shape("orders")
    if shape is None:
        declaration = SAMPLE_DECLARATION
    template = template or ("table" if of.is_table and of.has_keys else "aggregation")
    if template == "table" and not of.has_keys:
        step = "load it with --key, or choose another template"
        raise ConfigurationError("a topic without keys is no table", topic=of.topic, next_step=step)
    ending = {"aggregation": f"by-{of.window[1][:-1]}", "deduplication": "once", "table": _by(of)}[template]
    sink = _free_name(_job_name(f"{of.topic}-{ending}"), taken)
    module = _identifier(sink)
    fields = _TEXTS[template](of)
    reasons = tuple(of.reasons[choice] for choice in _CHOICES[template] if choice in of.reasons)
    keeps_settings = (folder / FILE_NAME).exists()
    page = {
        "name": folder.resolve().name,
        "template": template,
        "shape": of,
        "job": sink,
        "sink": sink,
        "module": module,
        "warehouse": warehouse,
        "keeps_settings": keeps_settings,
        "has_sample": shape is None,
        "lake": None if declaration is None else _identifier(of.topic),
        "declaration": _declared(declaration or {}),
        "reasons": reasons,
        **fields,
        "imports": _imports(str([fields[name] for name in ("key", "keys", "values", "group") if name in fields])),
    }
    files = {
        "README.md": "README.md.j2",
        ".gitignore": "gitignore.j2",
        **({} if keeps_settings else {FILE_NAME: "hindstream.toml.j2"}),
        f"jobs/{module}.py": f"{template}.py.j2",
        f"tests/test_{module}.py": f"test_{template}.py.j2",
        f"dags/{module}.py": "dag.py.j2",
        **({"jobs/lake.py": "lake.py.j2"} if declaration is not None else {}),
    }
    texts = {path: _templates().get_template(name).render(page) for path, name in files.items()}
    texts |= sample_files() if shape is None else {}
    _write(folder, texts)
    return Project(
        folder=folder,
        files=tuple(texts),
        template=template,
        job=sink,
        reference=f"jobs/{module}.py:job",
        topic=of.topic,
        sink=sink,
        reasons=reasons,
        has_sample=shape is None,
        lake=None if declaration is None else f"jobs/lake.py:{_identifier(of.topic)}",
    )


def _by(of: Shape) -> str:
    return f"by-{of.category[-1]}" if of.category else "now"


def _declared(declaration: Mapping[str, object]) -> list[str]:
    """The arguments of a `hindstream.LakeTopic` but for its name; a path is one from the project's folder."""
    usual = {field.name: field.default for field in fields(LakeTopic)}
    arguments = {name: value for name, value in declaration.items() if name != "name" and value != usual[name]}
    return [f"{name}={_argument(name, value)}" for name, value in arguments.items()]


def _argument(name: str, value: object) -> str:
    if name == "registry":
        return f"SchemaRegistry({literal(value)})"
    if name != "source":
        return literal(tuple(value) if isinstance(value, list) and name in {"value", "columns"} else value)
    sources = [value] if isinstance(value, str) else list(cast("Sequence[str]", value))
    texts = [f"str(PROJECT / {literal(one)})" if not is_elsewhere(one) else literal(one) for one in sources]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def is_elsewhere(source: str) -> bool:
    """Whether a source is no path, or an absolute one."""
    return source.startswith(("/", "~")) or bool(_SCHEME.match(source))


def _write(folder: Path, files: dict[str, str]) -> None:
    there = [path for path in files if (folder / path).exists()]
    if there:
        step = "choose another name, or move the file away: nothing is written over"
        raise ConfigurationError("there is such a file already", file=str(folder / there[0]), next_step=step)
    try:
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise ConfigurationError(f"the project cannot be written: {error}", file=str(folder)) from error


def _imports(values: str) -> list[str]:
    """The lines that a test needs for the texts of its values."""
    times = [name for name in ("UTC", "date", "datetime") if re.search(rf"\b{name}\b(?=[()])", values)]
    lines = [f"from datetime import {', '.join(times)}"] if times else []
    return [*lines, "from decimal import Decimal"] if "Decimal(" in values else lines


def _job_name(text: str) -> str:
    """Letters, digits and ``._-``, beginning with a letter or digit, at most 100."""
    return _NOT_IN_NAMES.sub("-", text).lstrip("._-")[:100] or "job"


def _free_name(name: str, taken: Collection[str]) -> str:
    names = (name, *(f"{name[:96]}-{n}" for n in range(2, len(taken) + 3)))
    return next(one for one in names if one not in taken)


def _identifier(text: str) -> str:
    """A name for a module."""
    name = re.sub(r"\W", "_", text).lower()
    return f"job_{name}" if keyword.iskeyword(name) or not name[0].isalpha() else name


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=False,  # noqa: S701 - Python and Markdown, not HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({"type": declared_type, "literal": literal, "duration": _duration})
    return environment


def _duration(size: tuple[int, str]) -> str:
    number, unit = size
    return f"{number} {unit[:-1] if number == 1 else unit}"
