"""Which views a store has, by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.described.view import VIEWS
from statelib.errors.kinds import ConfigurationError
from statelib.snapshots import buffers, joins, tables, windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.described.description import Described
    from statelib.described.view import View, ViewName
    from statelib.stores.spec import StoreKind

_OF_KIND: dict[StoreKind, Callable[[Described, ViewName], View | None]] = {
    "key-value": tables.key_value_view,
    "versioned": tables.versioned_view,
    "window": windows.window_view,
    "session": windows.session_view,
    "deduplication": tables.deduplication_view,
    "suppression-buffer": buffers.suppression_view,
    "join-buffer": buffers.join_buffer_view,
    "join-window": joins.join_window_view,
    "held-records": joins.held_view,
    "subscriptions": joins.subscriptions_view,
    "foreign-key-answers": tables.answers_view,
    "punctuation": buffers.punctuation_view,
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
    found = {name: made(described, name) for name in VIEWS}
    return {name: view for name, view in found.items() if view is not None}
