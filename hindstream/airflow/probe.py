"""Whether what a connection names can be reached; a program of its own, for `hindstream.airflow.hook`.

``python -m hindstream.airflow.probe SETTINGS`` takes settings as JSON, and credentials from the environment.
"""

from __future__ import annotations

import json
import sys

from statelib.errors.counted import counted
from statelib.errors.kinds import HindstreamError
from statelib.settings.settings import load_settings
from statelib.storage.storage import existing_storage

QUICK = {"storage_retries": 1, "storage_connect_timeout_ms": 5_000, "storage_request_timeout_ms": 10_000}
"""Somebody waits for the answer."""


def main(argument: str) -> None:
    """Prints what was found; an error ends the program.

    Raises:
        HindstreamError: Something cannot be reached.
    """
    settings = load_settings({**QUICK, **json.loads(argument)}, environ={})
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    warehouse.list("doctor")  # one small request
    found = [f"{warehouse.uri('')} can be read"]
    if settings.kafka:
        from hindstream.kafka.cluster import Cluster  # noqa: PLC0415 - the extra may be missing

        topics = len(Cluster(settings).topic_names())
        found.append(f"{settings.kafka['bootstrap.servers']} has {counted(topics, 'topic')}")
    print("; ".join(found))  # noqa: T201 - what the hook reads


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except HindstreamError as error:
        sys.exit(str(error))
