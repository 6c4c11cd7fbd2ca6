"""The changelogs of stores that get another name: copies under their new topics, so a rollback finds the old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.layout import renamed_changelogs, topic_path
from statelib.commits.publication.publish import publish
from statelib.errors.fault_points import step

if TYPE_CHECKING:
    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import Evolution
    from statelib.storage import Storage


def copy_changelogs(warehouse: Storage, head: Commit, evolution: Evolution) -> None:
    """Copies each changelog of a store that is renamed to the topic of its new name.

    Only what is not there is copied. So a copy that was broken off is made whole, and a driver that comes too late,
    when another has committed and published under the new name, takes nothing away: objects of an archive never
    change, and all that it would copy is there.

    Args:
        warehouse: Root of all durable data.
        head: The newest commit; it is published before, so that the changelogs are whole.
        evolution: How the state goes on from it.
    """
    logged = head.sink_offsets()
    topics = [topics for topics in renamed_changelogs(head.job, evolution.migrations).items() if topics[0] in logged]
    if not topics:
        return
    publish(warehouse, head.job)
    for former, now in topics:
        _remove_another(warehouse, former, now)
        source, target = f"{topic_path(former)}/", f"{topic_path(now)}/"
        objects = {found.path.removeprefix(source) for found in warehouse.list(source.rstrip("/"))}
        objects -= {found.path.removeprefix(target) for found in warehouse.list(target.rstrip("/"))}
        for name in sorted(objects, key=lambda name: (name.startswith("_delta_log/"), name)):  # the log last, in order
            warehouse.copy(f"{source}{name}", f"{target}{name}")
            step("plan.changelog-object-copied")
        warehouse.sync(f"{target}_delta_log")
        step("plan.changelog-copied")


def _remove_another(warehouse: Storage, former: str, now: str) -> None:
    """Deletes what a store had that had the new name before; a copy has the table id of what it was made from."""
    there = open_archive_if_present(warehouse, now)
    if there is not None and there.table_id != open_archive(warehouse, former).table_id:
        warehouse.delete([found.path for found in warehouse.list(topic_path(now))])
