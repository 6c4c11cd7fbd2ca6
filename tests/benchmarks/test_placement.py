"""The simulated cluster keeps its own books; what the strategies come to is what the benchmark is for."""

from __future__ import annotations

import json

import pytest

from benchmarks.placement import __main__ as command
from benchmarks.placement.cluster import SCENARIOS, Cluster, Size
from benchmarks.placement.strategies import STRATEGIES
from statelib.assignment.model import AssignmentConfig

SIZE = Size(hosts=10, racks=5, tasks=60, config=AssignmentConfig(1, 3, int(5e8)))
BY_TITLE = {strategy.title: strategy for strategy in STRATEGIES}


@pytest.mark.parametrize("title", BY_TITLE)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_ends_with_all_copies_there(title, scenario):
    cluster = Cluster(SIZE, BY_TITLE[title])
    costs = list(SCENARIOS[scenario](cluster))
    assert costs[-1].is_final
    quiet = [cluster.run() for _ in range(2)][-1]
    assert (quiet.moved_tasks, quiet.waited_for_bytes, quiet.last_task_seconds) == (0, 0, 0)
    grown = sum(SIZE.growth * size for size in cluster.state_bytes.values())
    assert quiet.copied_bytes == pytest.approx(grown), "each standby fetches what has been added"
    copies = sum(len(host.disk) for host in cluster.hosts)
    assert copies == 2 * SIZE.tasks


def test_learners_save_the_wait_that_others_have():
    waited = {
        title: sum(cost.waited_for_bytes for cost in SCENARIOS["scale-out by a tenth"](Cluster(SIZE, strategy)))
        for title, strategy in BY_TITLE.items()
    }
    most = SIZE.tasks * SIZE.config.acceptable_recovery_lag
    assert max(waited["sticky"], waited["high availability"]) < most / 10
    assert min(waited["revoke all"], waited["consistent hashing"]) > waited["sticky"]
    assert waited["revoke all"] > sum(Cluster(SIZE, BY_TITLE["revoke all"]).state_bytes.values()) / 2


def test_the_command_prints_and_plots(tmp_path, monkeypatch, capsys):
    arguments = [
        "placement",
        "--hosts",
        "10",
        "--tasks",
        "60",
        "--only",
        "sticky",
        "revoke all",
        "--output",
        str(tmp_path),
    ]
    monkeypatch.setattr("sys.argv", arguments)
    command.main()
    printed = capsys.readouterr().out
    assert printed.count("\n| sticky |") == printed.count("\n| revoke all |") == len(SCENARIOS)
    figures = json.loads((tmp_path / "placement.json").read_text())
    assert set(figures["scenarios"]) == set(SCENARIOS)
    assert all(file.read_text().startswith("<svg") for file in tmp_path.glob("*.svg"))
    assert len(list(tmp_path.glob("*.svg"))) == len(SCENARIOS)
