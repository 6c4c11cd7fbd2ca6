"""The changelogs of stores that get another name: copies under their new topics, so a rollback finds the old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import renamed_changelogs, topic_path
from statelib.commits.publish import publish
from statelib.steps import step

if TYPE_CHECKING:
    from statelib.manifests import Commit, Evolution
    from statelib.storage import Storage


def copy_changelogs(warehouse: Storage, head: Commit, evolution: Evolution) -> None:
    """Copies each changelog of a store that is renamed to the topic of its new name.

    Until the commit that has the new names nobody reads the copies, so a copy that was broken off is made anew.

    Args:
        warehouse: Root of all durable data.
        head: The newest commit; it is published before, so that the changelogs are whole.
        evolution: How the state goes on from it.
    """
    logged = {place.rpartition("/")[0] for task in head.tasks.values() for place in task.position.sink_offsets}
    topics = [topics for topics in renamed_changelogs(head.job, evolution.migrations).items() if topics[0] in logged]
    if not topics:
        return
    publish(warehouse, head.job)
    for former, now in topics:
        source, target = f"{topic_path(former)}/", f"{topic_path(now)}/"
        warehouse.delete([found.path for found in warehouse.list(target.rstrip("/"))])
        objects = [found.path.removeprefix(source) for found in warehouse.list(source.rstrip("/"))]
        for name in sorted(objects, key=lambda name: (name.startswith("_delta_log/"), name)):  # the log last, in order
            warehouse.copy(f"{source}{name}", f"{target}{name}")
        warehouse.sync(f"{target}_delta_log")
        step("plan.changelog-copied")
