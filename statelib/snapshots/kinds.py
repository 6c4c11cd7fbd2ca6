"""Which views a store has, by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from statelib.operators.deduplication.snapshot import deduplication_view
from statelib.operators.joins.foreign_key.snapshot import answers_view, subscriptions_view
from statelib.operators.joins.stream_stream.snapshot import held_view, join_window_view
from statelib.operators.joins.stream_table.snapshot import join_buffer_view
from statelib.operators.processors.snapshot import punctuation_view
from statelib.operators.sessions.snapshot import session_view
from statelib.operators.suppress.snapshot import suppression_view
from statelib.operators.tables.snapshot import key_value_view
from statelib.operators.versioned.snapshot import history_view, versioned_view
from statelib.operators.windows.snapshot import window_view

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.described.description import Described
    from statelib.described.view import View, ViewName
    from statelib.stores.spec import StoreKind

_OF_KIND: dict[StoreKind, dict[ViewName, Callable[[Described], View | None]]] = {
    "key-value": {"latest": key_value_view},
    "versioned": {"latest": versioned_view, "history": history_view},
    "window": {"latest": window_view},
    "session": {"latest": session_view},
    "deduplication": {"latest": deduplication_view},
    "suppression-buffer": {"latest": suppression_view},
    "join-buffer": {"latest": join_buffer_view},
    "join-window": {"latest": join_window_view},
    "held-records": {"latest": held_view},
    "subscriptions": {"latest": subscriptions_view},
    "foreign-key-answers": {"latest": answers_view},
    "punctuation": {"latest": punctuation_view},
}


def views_of(described: Described) -> dict[ViewName, View]:
    """The views that a store has.

    Raises:
        ConfigurationError: It is of a kind that this release does not know.
    """
    made = _OF_KIND.get(described.store.kind)  # type: ignore[call-overload]
    if made is None:
        raise ConfigurationError(
            f"a store of kind {described.store.kind!r} cannot be read by this release",
            store=described.name,
            next_step="use the release of Hindstream that wrote it, or a newer one",
        )
    found = {name: view(described) for name, view in made.items()}
    return {name: view for name, view in found.items() if view is not None}
