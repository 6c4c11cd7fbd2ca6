"""A sample of the random programs: however they are cut, they write the same bytes.

More of them: ``./dev campaign invariance --programs 500``.
"""

from __future__ import annotations

import pytest

from tests.differential.generator import program_of
from tests.differential.invariance import difference_of_bytes


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(12))
def test_a_random_program_writes_the_same_bytes(seed: int) -> None:
    assert difference_of_bytes(program_of(seed)) is None
