"""The faults, in the order of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.campaign.damage import CORRUPTION
from tests.faults.campaign.disk_full import DISK_FULL
from tests.faults.campaign.kills import KILLS
from tests.faults.campaign.late_attempts import SPECULATION, ZOMBIE_ATTEMPTS
from tests.faults.campaign.memory import MEMORY
from tests.faults.campaign.no_permission import NO_PERMISSION
from tests.faults.campaign.power import POWER
from tests.faults.campaign.scheduler import AIRFLOW
from tests.faults.campaign.spark import EXECUTORS, SPARK_KILLS
from tests.faults.campaign.store import AMBIGUOUS, STORE
from tests.faults.campaign.zombies import ZOMBIES

if TYPE_CHECKING:
    from tests.faults.campaign.case import Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        *(KILLS, POWER, CORRUPTION, DISK_FULL, NO_PERMISSION, MEMORY, ZOMBIES, AMBIGUOUS, STORE),
        *(SPARK_KILLS, EXECUTORS, SPECULATION, ZOMBIE_ATTEMPTS, AIRFLOW),
    )
}
