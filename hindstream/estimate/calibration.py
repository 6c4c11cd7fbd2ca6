"""What a machine takes for the parts of a run: measured by `hindstream.estimate.calibrate`, kept as a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from statelib.documents.document import Data, Document
from statelib.errors.kinds import ConfigurationError
from statelib.storage.local_files import make_directories, write_file

if TYPE_CHECKING:
    from statelib.settings.settings import Settings

Engine = Literal["spark", "local"]

RECORDED = Path(__file__).with_name("recorded.json")
"""Comes with Hindstream: of the machine that it names."""

FILE = "calibration.json"
"""In ``state_dir``: of this machine."""


class Machine(Data):
    """Where it was measured."""

    cpus: int
    platform: str
    python: str


class EngineCost(Data):
    """What a run costs beside its records, on one engine.

    The memory is that of all processes together: all that is resident of the first one, and of those that it starts
    their share of pages that several have.
    """

    start_seconds: float = Field(description="from the command to the first slice")
    start_cpu_seconds: float
    slice_seconds: float = Field(description="of a slice of hardly any records, all phases")
    slice_cpu_seconds: float
    memory_bytes: int = Field(description="of all processes but those that run tasks on Spark; idle")
    worker_bytes: int = Field(description="of each process that runs tasks on Spark; idle. Local: 0")


class ColumnCost(Data):
    """Seconds that reading, or writing, takes."""

    record_seconds: float = Field(description="of a record with its key and time")
    number_seconds: float = Field(description="of each number, time or boolean in its value")
    text_seconds: float = Field(description="of each text, or other value of no fixed size; some 16 bytes that differ")


class Calibration(Document):
    """What a machine takes for the parts of a run. Times are CPU seconds of one core unless they say otherwise."""

    kind: ClassVar[str] = "calibration"
    way_out: ClassVar[str] = "delete the file, and measure again: hindstream estimate --calibrate"
    measured_at_ms: int
    machine: Machine
    engines: dict[Engine, EngineCost]
    task_seconds: float = Field(description="of a task of hardly any records")
    check_seconds: float = Field(description="of an expectation, however few records its sink has")
    checked_record_seconds: float = Field(description="of each record that an expectation is asked of")
    read: ColumnCost
    write: ColumnCost
    operators: dict[str, float] = Field(description="seconds of a record that an operator of the kind takes up")
    call_seconds: float = Field(description="of a function of the user's that is called for each record")
    state_byte_seconds: float = Field(description="of each byte of state that a slice writes to a checkpoint")
    state_entry_bytes: float = Field(description="of state for each key, id or window that is alive")
    batch_bytes: int = Field(description="of memory for the records that a task has at hand at a time")

    def operator_seconds(self, kind: str) -> float:
        """What a record costs in an operator of a kind; of one that nobody has measured, as much as in the costliest.

        Kinds are those that `OperatorSpec.describe` names.
        """
        found = self.operators.get(kind)
        return max(self.operators.values(), default=0.0) if found is None else found


def read_calibration(file: Path) -> Calibration:
    """A calibration.

    Raises:
        ConfigurationError: There is no such file, or a newer Hindstream wrote it.
        CorruptedDataError: It is damaged.
    """
    try:
        return Calibration.decode(file.read_bytes(), file=str(file))
    except OSError as error:
        what = f"the calibration cannot be read: {error.strerror or error}"
        step = "measure one: hindstream estimate --calibrate, which keeps it in state_dir"
        raise ConfigurationError(what, file=str(file), next_step=step) from None


def find_calibration(settings: Settings, given: Path | None = None) -> tuple[Calibration, str]:
    """The calibration that counts, and where it is from, for a person.

    Args:
        settings: Of whose ``state_dir`` that of this machine is taken, if it has one; else the recorded one.
        given: A file that counts before both.

    Raises:
        HindstreamError: As `read_calibration`.
    """
    if given is not None:
        return read_calibration(given), str(given)
    own = settings.local_state_dir / FILE
    if own.exists():
        return read_calibration(own), str(own)
    return read_calibration(RECORDED), "recorded"


def keep_calibration(calibration: Calibration, file: Path) -> None:
    """Writes a calibration, in the place of a former one.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    try:
        make_directories(file.parent)
        write_file(file, lambda path: path.write_bytes(calibration.encode()), replace=True)
    except OSError as error:
        step = "choose a file that can be written: --calibration FILE, or another state_dir"
        what = f"the calibration cannot be written: {error.strerror or error}"
        raise ConfigurationError(what, file=str(file), next_step=step) from None
