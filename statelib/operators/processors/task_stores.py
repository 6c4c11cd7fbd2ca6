"""The stores of a task's custom processors, of which several may have one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelib.operators.base import OperatorContext
    from statelib.operators.processors.changelog import StoreLog
    from statelib.state import StateStore

_SHARED_AS = "stores of processors"


@dataclass(slots=True)
class TaskStores:
    """See the module's docstring.

    Attributes:
        opened: By name.
        logs: By name, what takes the changes of those that have changelogs.
        timestamp: Of the record that is being processed, or the time of the call, ms.
    """

    opened: dict[str, StateStore[Any]] = field(default_factory=dict)
    logs: dict[str, StoreLog] = field(default_factory=dict)
    timestamp: int = 0

    @classmethod
    def of(cls, context: OperatorContext) -> TaskStores:
        """Those of the task."""
        stores: TaskStores = context.shared.setdefault(_SHARED_AS, cls())
        return stores
