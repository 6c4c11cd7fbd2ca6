"""DAGs of jobs, and operators: slices replayed, stores migrated, warehouses maintained, applications switched over.

Airflow is imported where a DAG is made. Begin with `replay`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from hindstream.lazy import offers
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from hindstream.airflow.archive import HindstreamArchiveOperator
    from hindstream.airflow.assets import topic_asset
    from hindstream.airflow.hook import HindstreamHook
    from hindstream.airflow.maintenance import maintenance_dag
    from hindstream.airflow.migration import migration_dag
    from hindstream.airflow.operators import HindstreamPlanOperator, HindstreamRunOperator
    from hindstream.airflow.phases import (
        HindstreamAuditOperator,
        HindstreamCommitOperator,
        HindstreamMaintainOperator,
        HindstreamPublishOperator,
        HindstreamReplayOperator,
        HindstreamReportOperator,
    )
    from hindstream.airflow.repair import HindstreamRepairOperator, repair_dag, repair_task_group
    from hindstream.airflow.replay import replay_dag, replay_task_group
    from hindstream.airflow.switch_over import switch_over_dag
    from hindstream.airflow.trial import try_task_group

__all__ = [
    "HindstreamArchiveOperator",
    "HindstreamAuditOperator",
    "HindstreamCommitOperator",
    "HindstreamHook",
    "HindstreamMaintainOperator",
    "HindstreamPlanOperator",
    "HindstreamPublishOperator",
    "HindstreamRepairOperator",
    "HindstreamReplayOperator",
    "HindstreamReportOperator",
    "HindstreamRunOperator",
    "maintenance_dag",
    "migration_dag",
    "repair_dag",
    "repair_task_group",
    "replay_dag",
    "replay_task_group",
    "switch_over_dag",
    "topic_asset",
    "try_task_group",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = offers(
        __name__,
        {
            "HindstreamArchiveOperator": "hindstream.airflow.archive:HindstreamArchiveOperator",
            "HindstreamAuditOperator": "hindstream.airflow.phases:HindstreamAuditOperator",
            "HindstreamCommitOperator": "hindstream.airflow.phases:HindstreamCommitOperator",
            "HindstreamMaintainOperator": "hindstream.airflow.phases:HindstreamMaintainOperator",
            "HindstreamPlanOperator": "hindstream.airflow.operators:HindstreamPlanOperator",
            "HindstreamPublishOperator": "hindstream.airflow.phases:HindstreamPublishOperator",
            "HindstreamRepairOperator": "hindstream.airflow.repair:HindstreamRepairOperator",
            "HindstreamReplayOperator": "hindstream.airflow.phases:HindstreamReplayOperator",
            "HindstreamReportOperator": "hindstream.airflow.phases:HindstreamReportOperator",
            "HindstreamRunOperator": "hindstream.airflow.operators:HindstreamRunOperator",
            "HindstreamHook": "hindstream.airflow.hook:HindstreamHook",
            "maintenance_dag": "hindstream.airflow.maintenance:maintenance_dag",
            "migration_dag": "hindstream.airflow.migration:migration_dag",
            "repair_dag": "hindstream.airflow.repair:repair_dag",
            "repair_task_group": "hindstream.airflow.repair:repair_task_group",
            "replay_dag": "hindstream.airflow.replay:replay_dag",
            "replay_task_group": "hindstream.airflow.replay:replay_task_group",
            "switch_over_dag": "hindstream.airflow.switch_over:switch_over_dag",
            "topic_asset": "hindstream.airflow.assets:topic_asset",
            "try_task_group": "hindstream.airflow.trial:try_task_group",
        },
    )

_airflow = find_spec("airflow")
if _airflow is None or _airflow.origin is None:  # a folder of that name, such as Airflow's home, is found too
    raise ConfigurationError(
        "Airflow is not installed", package="apache-airflow", next_step="pip install 'hindstream[airflow]'"
    )
