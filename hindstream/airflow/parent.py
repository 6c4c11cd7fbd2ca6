"""Makes Airflow's task the parent of what its phase tells OpenLineage, where Airflow's own provider tells of tasks.

Source: the macros of ``apache-airflow-providers-openlineage``, which name a task's run as the provider does.
"""

from __future__ import annotations

import importlib
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk import get_current_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from statelib.settings.settings import Settings

_OWN_BACKEND = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")
_OWN_PARENT = ("OPENLINEAGE_PARENT_ID", "OPENLINEAGE_CONTEXT")


@contextmanager
def task_as_parent(settings: Settings) -> Iterator[None]:
    """Says in the environment, until its end, which run is above, and who is told of runs.

    What the environment says by itself stands. Without the provider, or where it is disabled, nothing is added.
    """
    added = _of_provider(os.environ) if settings.openlineage else {}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _of_provider(environ: Mapping[str, str]) -> dict[str, str]:
    """See `hindstream.lineage.parent`, and how OpenLineage's client is configured."""
    try:
        macros = importlib.import_module("airflow.providers.openlineage.plugins.macros")
        conf = importlib.import_module("airflow.providers.openlineage.conf")
    except ImportError:
        return {}
    if conf.is_disabled():
        return {}
    task, added = get_current_context()["ti"], {}
    if not any(map(environ.get, _OWN_PARENT)):
        added["OPENLINEAGE_PARENT_ID"] = macros.lineage_parent_id(task)
        added["OPENLINEAGE_ROOT_PARENT_ID"] = macros.lineage_root_parent_id(task)
    if not any(map(environ.get, _OWN_BACKEND)):
        if conf.transport():
            added["OPENLINEAGE__TRANSPORT"] = json.dumps(conf.transport())
        elif conf.config_path():
            added["OPENLINEAGE_CONFIG"] = conf.config_path()
    if not environ.get("OPENLINEAGE_NAMESPACE"):
        added["OPENLINEAGE_NAMESPACE"] = conf.namespace()
    return added
