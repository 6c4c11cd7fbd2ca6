"""Whatever is done to a job and its versions in whatever order, each has what a job has to which nothing was done."""

from __future__ import annotations

import random

import pytest

from tests.commits.versions.house import House

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("seed", "commands"), [(125, 4), *(pytest.param(seed, 14, marks=pytest.mark.long) for seed in range(60))]
)
def test_each_has_what_it_must_have(tmp_path, seed, commands):
    house, chance = House(tmp_path, seed), random.Random(seed)
    for command in (house.run, house.run, house.fork):
        house.told.append(command.__name__)
        command("job")
    try:
        for _ in range(commands):
            house.act()
            house.check()
            if chance.random() < 0.5:
                house.check_difference(chance)
        house.check(every_commit=True)
        house.check_states()
    finally:
        print("\n".join(house.told))  # pytest shows it of a failure
