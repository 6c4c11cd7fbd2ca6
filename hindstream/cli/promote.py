"""``hindstream promote`` and ``views``: readers of a job move to a fork of it, or back, and what they read in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hindstream.console.json_lines import print_json
from hindstream.console.results import Results
from hindstream.runs import now_ms
from hindstream.sql.dialects import DIALECTS
from hindstream.sql.views import views_of
from statelib.commits.promotion import go_back, promote
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.documents.upkeep import Promotion
    from statelib.settings.settings import Settings


def promote_job(
    new: str, over: str, settings: Settings, output: Output, *, allow_behind: bool, allow_other_fields: bool
) -> None:
    """Promotes a fork, and says what readers read now.

    Raises:
        HindstreamError: See `statelib.commits.promotion.promote`.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    made = promote(
        warehouse, new, over, now_ms=now_ms(), allow_behind=allow_behind, allow_other_fields=allow_other_fields
    )
    _tell(made, output)


def promote_back(over: str, settings: Settings, output: Output) -> None:
    """Undoes the last promotion, and says what readers read now.

    Raises:
        HindstreamError: See `statelib.commits.promotion.go_back`.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    _tell(go_back(warehouse, over, now_ms=now_ms()), output)


def print_views(job: str, dialect: str, schema: str | None, settings: Settings, output: Output) -> None:
    """Prints the statements that make the views of what the readers of a job read.

    Raises:
        HindstreamError: See `hindstream.sql.views.views_of`.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    engine = DIALECTS[dialect]
    made = views_of(warehouse, job, engine, schema=schema)
    if output == "json":
        print_json(made)
    else:
        statements = [f"{view.sql};" for view in made.views]
        about = f"-- What the readers of {job} read: {_named(job, made.serving)}."
        typer.echo("\n\n".join(filter(None, [about, engine.begin, *statements, engine.end])))
    for view in made.views:
        if not view.is_complete:
            typer.echo(
                f"{made.serving} has written nothing to {view.sink} yet. Make its view again when it has.", err=True
            )


def _named(job: str, serving: str) -> str:
    return serving if serving != job else "the job itself"


def _tell(made: Promotion, output: Output) -> None:
    out = Results(output)
    what = f"{made.serving}@{made.commit}" if made.serving != made.job else "the job itself"
    since = f" from now on (promotion {made.number})" if made.number else ", as ever"
    out.say(f"Readers of {made.job} read {what}{since}.")
    if made.serving != made.job:
        out.say(f"The way back: hindstream promote --back --over {made.job}")
    if made.number:
        out.say(f"If they read views of SQL, make these again: hindstream views {made.job} --dialect ENGINE")
    out.result(made)
