"""An auth manager of Airflow's under which nobody may read one DAG."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

from tests.hindstream.airflow.page import HIDDEN


class GuardedAuthManager(SimpleAuthManager):
    """Everybody may do what his role may, but nothing with the DAG `HIDDEN`."""

    def is_authorized_dag(self, *, details: Any = None, **others: Any) -> bool:
        return (details is None or details.id != HIDDEN) and super().is_authorized_dag(details=details, **others)
