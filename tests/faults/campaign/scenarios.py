"""What there is before each scenario of the subject, and after it when nothing happens: made once for all faults."""

from __future__ import annotations

import fcntl
import pickle
import shutil
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.errors.fault_points import observed
from statelib.errors.kinds import HindstreamError
from tests.faults import subject
from tests.faults.campaign.case import Outcome
from tests.faults.children import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.calls import Call
    from tests.faults.children import Ended
    from tests.faults.subject import Difference, Result


@dataclass(frozen=True)
class Scenario:
    """A scenario.

    Attributes:
        name: One of `subject.SCENARIOS`.
        base: What there is before it.
        expected: What there is after it.
        further: What there is after one more slice.
        steps: How often it comes to each named step.
        calls: What changes files, in its order: name, path and flags.
    """

    name: str
    base: Path
    expected: Result
    further: Result
    steps: Counter[str]
    calls: tuple[tuple[str, str, int], ...]


@contextmanager
def scenarios(folder: Path) -> Iterator[Path]:
    """Gives where `scenario` makes and finds them; they are for all faults."""
    made = folder.parent / "scenarios"
    made.mkdir(exist_ok=True)
    yield made


def scenario(made: Path, name: str) -> Scenario:
    """A scenario, which is made if it is not there; by children of this process, which must have one thread only."""
    file = made / f"{name}.pickle"
    with (made / f"{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            prepared = Child(made, lambda: subject.before(made / name, name)).run()
            assert prepared.code == 0, prepared
            file.write_bytes(pickle.dumps(_undisturbed(made, name)))
    found = pickle.loads(file.read_bytes())
    assert isinstance(found, Scenario)
    return found


def _undisturbed(made: Path, name: str) -> Scenario:
    root = Path(shutil.copytree(made / name, made / f"{name}.undisturbed"))
    calls: list[tuple[str, str, int]] = []

    def work() -> Counter[str]:
        steps: Counter[str] = Counter()
        with observed(lambda step: steps.update([step])):
            subject.drive(subject.pipeline(root, "undisturbed"), name)
        return steps

    def note(call: Call) -> None:
        calls.append((call.name, call.path, call.flags))

    ended = Child(made, work).run_traced(root, note)
    assert ended.code == 0, ended

    def look() -> Result:
        return subject.result_of(subject.pipeline(root, "look"))

    def look_further() -> Result:
        subject.drive_further(subject.pipeline(root, "further"), name)
        return look()

    looked, further = Child(made, look).run(), Child(made, look_further).run()
    assert looked.code == further.code == 0, (looked, further)
    shutil.rmtree(root)
    return Scenario(name, made / name, looked.value, further.value, ended.value, tuple(calls))


class Run:
    """A scenario under way in a folder: a copy of what was before it, which children drive."""

    def __init__(self, folder: Path, made: Path, name: str) -> None:
        self.scenario = scenario(made, name)
        self.folder = folder
        self.root = Path(shutil.copytree(self.scenario.base, folder / "root"))
        self._children = 0

    def driver(self, observer: Callable[[str], None] | None = None) -> Child:
        """A child that goes on with the scenario."""
        return Child(self.folder, self.work(observer))

    def work(self, observer: Callable[[str], None] | None = None) -> Callable[[], None]:
        """What a child does to go on with the scenario."""
        self._children += 1
        attempt = f"d{self._children}-"

        def work() -> None:
            made = subject.pipeline(self.root, attempt)
            if observer is None:
                subject.drive(made, self.scenario.name, self._note)
            else:
                with observed(observer):
                    subject.drive(made, self.scenario.name, self._note)

        return work

    def _note(self, what: str, number: int) -> None:
        with (self.folder / "promised").open("a") as file:
            file.write(f"{what} {number}\n")

    def promised(self) -> dict[str, int]:
        """What drivers have been told is durable."""
        file = self.folder / "promised"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return {
            what: max(int(number) for name, number in lines if name == what) for what in {line[0] for line in lines}
        }

    def end(self) -> Ended:
        """Goes on undisturbed to the end, in a child whose value is the `Result`."""
        work = self.work()

        def work_and_look() -> Result:
            work()
            return subject.result_of(subject.pipeline(self.root, "look"))

        return Child(self.folder, work_and_look).run()

    def difference(self, found: Result) -> Difference:
        """To what it would be undisturbed."""
        return subject.difference(self.scenario.expected, found)

    def recovered(self, note: str, injected: int = 1, *, may_refuse: bool = False) -> Outcome:
        """Goes on to the end, which must be as if nothing had been; ``may_refuse``: or say what is damaged."""
        ended = self.end()
        if may_refuse and is_refusal(ended.error):
            return Outcome(injected, refused=injected, note=f"{note}: {ended.error}")
        if ended.code:
            return Outcome(injected, wrong=f"{note}: run again it ends with {ended}")
        found = self.difference(ended.value)
        return Outcome(injected, recovered=0 if found else injected, difference=found, note=note)


def is_refusal(error: object) -> bool:
    """Whether an error names a file and the way out."""
    return isinstance(error, HindstreamError) and "file" in error.place and bool(error.next_step)
