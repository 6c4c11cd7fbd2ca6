"""``hindstream init``: a project to own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.console.results import Results
from hindstream.projects.project import TEMPLATES, make_project
from hindstream.projects.shape import shape_of
from statelib.commits.archives import open_archive
from statelib.ingest.declared import IN_CODE
from statelib.ingest.ledger import Ledger
from statelib.storage.storage import existing_storage
from statelib.topics.places import topics_in

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from hindstream.projects.project import Project, Template
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


def make(name: str, template: Template | None, topic: str | None, settings: Settings, output: Output) -> None:
    """Makes a project, and prints what is in it and what comes next.

    Raises:
        ConfigurationError: A file is there already, or there is no such topic.
    """
    if topic is None:
        made = make_project(Path(name), template)
    else:
        storage = existing_storage(settings.warehouse, settings.store_options)
        archive = open_archive(storage, topic)
        declaration = _declaration(storage, archive)
        shape = shape_of(archive, is_changes=(declaration or {}).get("envelope") == "debezium")
        taken = {*topics_in(storage), *(path.rpartition("/")[2] for path in storage.folders("jobs"))}
        made = make_project(
            Path(name),
            template,
            shape,
            warehouse=storage.uri(""),
            taken=taken,
            declaration=declaration,
        )
    out = Results(output)
    out.say(f"{made.folder.resolve().name}: {TEMPLATES[made.template]}, from {made.topic} to {made.sink}.")
    for reason in made.reasons:
        out.say(reason)
    for file in made.files:
        out.say(f"  {file}")
    there = "" if made.folder.resolve() == Path.cwd() else f"cd {made.folder} && "
    out.say(f"Next: {there}pytest{_load(made)} && hindstream run {made.reference}")
    out.result(made)


def _load(made: Project) -> str:
    return f" && hindstream ingest {made.lake}" if made.has_sample else ""


def _declaration(storage: Storage, archive: TopicArchive) -> dict[str, object] | None:
    """How the topic was loaded from files, with absolute paths; None: it was not."""
    newest = Ledger(storage, archive.topic, archive).newest
    return None if newest is None or IN_CODE in newest.declaration else newest.declaration
