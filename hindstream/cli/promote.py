"""``hindstream promote``: readers of a job move to a fork of it, or back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.console.results import Results
from hindstream.runs import now_ms
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


def _tell(made: Promotion, output: Output) -> None:
    out = Results(output)
    what = f"{made.serving}@{made.commit}" if made.serving != made.job else "the job itself"
    since = f" from now on (promotion {made.number})" if made.number else ", as ever"
    out.say(f"Readers of {made.job} read {what}{since}.")
    if made.serving != made.job:
        out.say(f"The way back: hindstream promote --back --over {made.job}")
    out.result(made)
