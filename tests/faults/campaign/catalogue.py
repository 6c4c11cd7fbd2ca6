"""The faults, in the order of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.campaign.kills import KILLS
from tests.faults.campaign.power import POWER

if TYPE_CHECKING:
    from tests.faults.campaign.case import Fault

FAULTS: dict[str, Fault] = {fault.name: fault for fault in (KILLS, POWER)}
