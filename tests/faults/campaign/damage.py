"""Damaged files: one bit of each kind of file, whole cases by chance, and every byte of each small document."""

from __future__ import annotations

import random
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statelib.documents.manifests import Audit, Commit, Staged
from statelib.documents.plans import Plan
from statelib.documents.topologies import TopologyDescription
from statelib.errors.kinds import CorruptedDataError
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.corruption import KINDS, Corruption, Damage
from tests.faults.corruption import Case as OneFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DOCUMENTS: dict[str, Any] = {
    "commit": Commit, "plan": Plan, "staged": Staged, "audit": Audit, "topology": TopologyDescription,
}  # fmt: skip
_EVERY_BYTE, _ONE_BIT = "every byte", "one bit"


@contextmanager
def _prepare(folder: Path) -> Iterator[Corruption]:
    yield Corruption(folder / "corruption")


def _cases(_: Corruption, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    kinds = list(KINDS)
    return [
        *((f"{_EVERY_BYTE} of {kind}", seed) for kind in _DOCUMENTS),
        *((f"{_ONE_BIT} of {kind}", seed) for kind in kinds),
        *((kinds[number % len(kinds)], seed + number) for number in range(len(kinds) if quick else 500)),
    ]


def _run(case: Case, folder: Path, corruption: Corruption) -> Outcome:
    if case.what.startswith(_EVERY_BYTE):
        return _every_byte(case.what.removeprefix(f"{_EVERY_BYTE} of "), case.seed, corruption)
    kind = case.what.removeprefix(f"{_ONE_BIT} of ")
    bit = (
        Damage("flip", random.Random(case.what + str(case.seed)).getrandbits(32), 1)
        if case.what.startswith(_ONE_BIT)
        else None
    )
    outcome = corruption.run(OneFile(kind, case.seed), bit)
    named = outcome.what == "named"
    return Outcome(recovered=int(not named), refused=int(named), note=f"{outcome.file}: {outcome.error or 'harmless'}")


def _every_byte(kind: str, seed: int, corruption: Corruption) -> Outcome:
    """A flipped bit in each byte of the smallest document of the kind is named by who reads it."""
    file = min((corruption.root / name for name in corruption.files(kind)), key=lambda path: path.stat().st_size)
    good, chance = file.read_bytes(), random.Random(seed)
    unnoticed, harmless, read = [], 0, _DOCUMENTS[kind].decode
    for at in range(len(good)):
        data = bytearray(good)
        data[at] ^= 1 << chance.randrange(8)
        try:
            found = read(bytes(data), file=str(file))
        except CorruptedDataError as error:
            if str(file) not in str(error):
                unnoticed.append(at)
        else:  # a digit that no double holds, an E for an e
            harmless += found == read(good, file=str(file))
            if found != read(good, file=str(file)):
                unnoticed.append(at)
    wrong = f"{file.name}: not noticed or not named at bytes {unnoticed}" if unnoticed else ""
    return Outcome(
        len(good),
        recovered=harmless,
        refused=len(good) - len(unnoticed) - harmless,
        wrong=wrong,
        note=f"{len(good)} bytes of {file.name}, {harmless} of them say the same when damaged",
    )


CORRUPTION = Fault(
    "corruption", "flipped, cut, zeroed, swapped in every kind of file: named, or harmless", _cases, _run, _prepare
)
