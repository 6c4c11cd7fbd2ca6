"""``hindstream init``: a project to own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.console.results import Results
from hindstream.projects.project import TEMPLATES, make_project
from hindstream.projects.shape import shape_of
from statelib.commits.archives import open_archive
from statelib.storage.storage import existing_storage
from statelib.topics.places import topics_in

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from hindstream.projects.project import Template
    from statelib.settings.settings import Settings


def make(name: str, template: Template, topic: str | None, settings: Settings, output: Output) -> None:
    """Makes a project, and prints what is in it and what comes next.

    Raises:
        ConfigurationError: A file is there already, or there is no such topic.
    """
    if topic is None:
        made = make_project(Path(name), template)
    else:
        storage = existing_storage(settings.warehouse, settings.store_options)
        shape = shape_of(open_archive(storage, topic))
        taken = {*topics_in(storage), *(path.rpartition("/")[2] for path in storage.folders("jobs"))}
        made = make_project(Path(name), template, shape, warehouse=storage.uri(""), taken=taken)
    out = Results(output)
    out.say(f"{made.folder}: {TEMPLATES[template]}, from {made.topic} to {made.sink}.")
    for reason in made.reasons:
        out.say(reason)
    for file in made.files:
        out.say(f"  {file}")
    sample = " && python sample_data.py" if made.has_sample else ""
    out.say(f"Next: cd {made.folder} && pytest{sample} && hindstream run {made.reference}")
    out.result(made)
