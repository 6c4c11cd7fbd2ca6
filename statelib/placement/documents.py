"""What is stored of placement with each run: who got what and why, and what came of the copies.

::

    <warehouse>/jobs/<job>/runs/<run id>/placement.json   Placement   written as the run begins to replay
                                        /copies.json      Copies      written once standbys have its commit

Reports and assignments are in Kafka's bytes (`statelib.assignment.subscription_info`,
`statelib.assignment.assignment_info`), in base64. Losing the documents costs stickiness in one round, nothing else.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from pydantic import Field

from statelib.assignment.assignment_info import decode_assignment
from statelib.assignment.model import AssignorName, TaskId
from statelib.assignment.subscription_info import FutureSubscription, SubscriptionInfo, decode_subscription
from statelib.commits.layout import JobLayout
from statelib.documents.document import Data, Document
from statelib.errors.kinds import InternalError

if TYPE_CHECKING:
    from statelib.storage import Storage

_WAY_OUT = "delete the file: it is only looked at to leave tasks where they were"


class PlacedHost(Data):
    """A host in a round: what it reported, and what it got."""

    executors: tuple[str, ...] = Field(description="Spark's names of its executors, ``<host>/<id>``")
    consumers: int = Field(description="how many tasks it runs at a time")
    rack: str | None
    subscription: str = Field(description="its report, in base64")
    assignment: str = Field(description="what it got, in base64")
    learning: tuple[str, ...] = Field(
        description="of the standbys in it, those that it gets in order to run them later"
    )
    lags: dict[str, int] = Field(description="by task, bytes that its copy lacked of the state at the round")

    @property
    def report(self) -> SubscriptionInfo:
        """Its report."""
        found = decode_subscription(base64.b64decode(self.subscription))
        if isinstance(found, FutureSubscription):
            raise InternalError(f"a report of version {found.version} has been stored")
        return found

    @property
    def process_id(self) -> UUID:
        """Which host it is."""
        return self.report.process_id

    @property
    def active(self) -> tuple[str, ...]:
        """The tasks that it runs."""
        return tuple(map(str, decode_assignment(base64.b64decode(self.assignment)).active_tasks))

    @property
    def standby(self) -> tuple[str, ...]:
        """Those of which it keeps a copy, without those that it learns."""
        held = decode_assignment(base64.b64decode(self.assignment)).standby_tasks
        return tuple(str(task) for task in held if str(task) not in self.learning)

    @property
    def learned(self) -> frozenset[TaskId]:
        """``learning`` as tasks."""
        return frozenset(map(TaskId.parse, self.learning))


class Move(Data):
    """A task that has another owner than before."""

    task_id: str
    before: UUID | None = Field(description="process id of the host that ran it last; None: nobody knows of one")
    now: UUID
    why: str


class Placement(Document):
    """One round of assignment."""

    kind: ClassVar[str] = "placement"
    way_out: ClassVar[str] = _WAY_OUT
    job: str
    run_id: str
    commit: int = Field(description="the number of the commit whose state hosts were asked about; 0: there is none")
    application: str = Field(description="Spark's id of the application, whose executors they are")
    assignor: AssignorName
    num_standby_replicas: int
    max_warmup_replicas: int
    acceptable_recovery_lag: int = Field(description="bytes")
    is_final: bool = Field(description="whether this is the assignor's target; if not, learners bring it nearer")
    hosts: tuple[PlacedHost, ...]
    moves: tuple[Move, ...]
    created_at_ms: int

    def owners(self) -> dict[str, PlacedHost]:
        """By task, the host that runs it."""
        return {task_id: host for host in self.hosts for task_id in host.active}


class CopyUpdate(Data):
    """What came of one copy."""

    task_id: str
    process_id: UUID
    is_learning: bool
    fetched_files: int = 0
    fetched_bytes: int = 0
    lag_bytes: int = Field(description="what it still lacks of the commit's state")
    rebuilt: str | None = Field(default=None, description="why it was deleted and begun anew")
    error: str | None = None


class Copies(Document):
    """Standbys and learners after a commit."""

    kind: ClassVar[str] = "record of copies"
    way_out: ClassVar[str] = _WAY_OUT
    job: str
    run_id: str
    commit: int
    copies: tuple[CopyUpdate, ...]
    seconds: float


def read_placement(warehouse: Storage, job: str, run_id: str) -> Placement | None:
    """The round of a run; None: it had none.

    Raises:
        CorruptedDataError: The document is damaged.
        ConfigurationError: A newer Hindstream wrote it.
    """
    return Placement.read_if_present(warehouse, JobLayout(job).placement(run_id))


def read_copies(warehouse: Storage, job: str, run_id: str) -> Copies | None:
    """What came of the copies after a run; None: there were none, or it is not done. Errors as `read_placement`."""
    return Copies.read_if_present(warehouse, JobLayout(job).copies(run_id))
