"""A backfill with a defect in it, and a migration whose changelog is another job's, in a process of their own.

(Airflow keeps what it finds when it is imported.) ``python -m tests.hindstream.airflow.scenario FOLDER`` writes what
happened to ``FOLDER/events.json`` and ``FOLDER/migration.json``.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hindstream.airflow import embedded
from hindstream.airflow.embedded import backfill
from hindstream.runs import open_warehouse
from statelib.commits import CommitLog
from statelib.errors.kinds import HindstreamError
from tests.hindstream.airflow import rates
from tests.hindstream.spark.orders import DAY_MS, HOUR_MS, JOB_FILE, VALUE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from hindstream.airflow.replay import TaskPer

DEFECT_MS = DAY_MS + 6 * HOUR_MS


def with_defect(table: pa.Table) -> pa.Table:
    """The first order of the second day's seventh hour has an amount so negative that its hour's sum is."""
    rows = table.to_pylist()
    wrong = next(n for n, row in enumerate(rows) if row["timestamp"].timestamp() * 1000 >= DEFECT_MS)
    order = rows[wrong]["value"]["order_id"]
    values = [row["value"] | {"amount": -1e6} if row["value"]["order_id"] == order else row["value"] for row in rows]
    return table.set_column(1, "value", pa.array(values, VALUE))


def main(folder: Path) -> None:
    settings = make_settings(folder)
    log = CommitLog(open_warehouse(settings), "orders")
    home = folder / "airflow"
    events: list[dict[str, Any]] = []

    def run(*untils: int | None, task_per: TaskPer = "phase", **more: object) -> None:
        given = {
            "warehouse": settings.warehouse,
            "state_dir": str(settings.state_dir),
            "engine": "local",
        } | more
        event: dict[str, Any] = {}
        try:
            of = {"home": home, "dag_id": "orders", "settings": given, "task_per": task_per}
            runs = backfill(f"{JOB_FILE}:job", untils, **of)
            event["runs"] = [{"run_id": one.run_id, "states": dict(one.states)} for one in runs]
        except HindstreamError as error:
            event["error"] = {"type": type(error).__name__, "message": str(error)}
        events.append({**event, "head": log.head_number(), "log": (home / "backfill.log").read_text()})

    archive_orders(settings, with_defect(orders()))
    run(DAY_MS)
    run(2 * DAY_MS, 3 * DAY_MS, task_per="run")
    shutil.rmtree(Path(settings.warehouse) / "topics" / "orders")
    archive_orders(settings, orders())
    run(2 * DAY_MS, task_per="run", recreated_sources="orders")
    run(DAY_MS, None, None, recreated_sources="orders")
    run(DAY_MS, None, task_per="run", recreated_sources="orders")
    (folder / "events.json").write_text(json.dumps(events))
    (folder / "migration.json").write_text(json.dumps(migrate(folder, home)))


def migrate(folder: Path, home: Path) -> dict[str, str]:
    """States of the tasks of a migration that somebody has approved."""
    rates.run_plain(folder / "rates")
    warehouse = str(folder / "rates" / "warehouse")
    rates.falsify_changelog(warehouse)
    given = f'warehouse="{warehouse}", state_dir="{folder}/rates/state", engine="local"'
    dag_file = home / "dags" / "migrate.py"
    dag_file.write_text(
        "from hindstream.airflow import migration_dag  # Airflow\n\n"
        f'dag = migration_dag("{rates.__file__}:job", stores=["rates"], dag_id="migrate", {given})\n'
    )
    with embedded._started(home).taken():
        from airflow.dag_processing.dagbag import DagBag  # noqa: PLC0415

        run = DagBag(dag_folder=dag_file).dags["migrate"].test(mark_success_pattern="^approve$")
        return {instance.task_id: str(instance.state) for instance in run.get_task_instances()} | {"run": run.state}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
