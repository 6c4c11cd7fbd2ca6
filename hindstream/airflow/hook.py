"""The hook of connections of the type ``hindstream``: the warehouse, its object store, and Kafka.

Their form in Airflow is in `hindstream.airflow.provider`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from airflow.sdk import BaseHook

from hindstream.airflow.connections import OWN_TYPE, settings_of, store_environment
from statelib.errors.kinds import HindstreamError

_WITHIN_S = 30


class HindstreamHook(BaseHook):
    """What a connection of the type ``hindstream`` stands for.

    Args:
        hindstream_conn_id: The connection.
    """

    conn_name_attr = "hindstream_conn_id"
    default_conn_name = "hindstream_default"
    conn_type = OWN_TYPE
    hook_name = "Hindstream"

    def __init__(self, hindstream_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.hindstream_conn_id = hindstream_conn_id

    def get_conn(self) -> dict[str, Any]:
        """The settings of the connection, without credentials: what ``replay_dag`` and the operators take by name."""
        return settings_of(self.get_connection(self.hindstream_conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Reads the warehouse, and asks Kafka for its topics if the connection names a cluster; nothing is written.

        A process of its own does it, which alone has the credentials in its environment.

        Returns:
            Whether all of it answers, and what was found.
        """
        connection = self.get_connection(self.hindstream_conn_id)
        settings = settings_of(connection)
        if "warehouse" not in settings:
            return False, "the connection names no warehouse: give the address of one, such as s3://lake/warehouse"
        try:
            environ = os.environ | store_environment(connection)
        except HindstreamError as error:
            return False, str(error)
        command = [sys.executable, "-P", "-m", "hindstream.airflow.probe", json.dumps(settings)]
        try:
            done = subprocess.run(  # noqa: S603 - this Python
                command, env=environ, check=False, capture_output=True, text=True, timeout=_WITHIN_S
            )
        except subprocess.TimeoutExpired:
            asked = [settings["warehouse"], *settings.get("kafka", {}).values()][:2]
            return False, f"no answer within {_WITHIN_S} s from {' or '.join(asked)}"
        said = (done.stdout if done.returncode == 0 else done.stderr).strip()
        return done.returncode == 0, said.splitlines()[-1] if said else f"exit code {done.returncode}"
