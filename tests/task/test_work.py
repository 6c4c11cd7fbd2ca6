from __future__ import annotations

import pytest

from statelib.task.work import TaskSettings


@pytest.mark.parametrize(
    ("budget_mib", "batch_records", "expected"),
    [(512, 131_072, 131_072), (512, 1_000_000, 838_860), (50, 131_072, 81_920), (50, 7, 7), (0, 131_072, 16_384)],
)
def test_a_small_memory_budget_makes_batches_smaller(budget_mib: int, batch_records: int, expected: int) -> None:
    settings = TaskSettings("w", "s", memory_budget_bytes=budget_mib << 20, batch_records=batch_records)
    assert settings.batch_records_beyond_budget == expected
