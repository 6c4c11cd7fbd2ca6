from __future__ import annotations

from uuid import UUID

import pytest

from statelib.assignment.high_availability import assign_highly_available
from statelib.assignment.model import AssignmentConfig, HostState, TaskId
from statelib.errors.kinds import ConfigurationError


def test_tasks_are_ordered_by_their_numbers():
    tasks = [TaskId.parse(text) for text in ("1_0", "0_10", "0_9")]
    assert [str(task) for task in sorted(tasks)] == ["0_9", "0_10", "1_0"]


@pytest.mark.parametrize("text", ["", "1", "1_", "_1", "a_1", "1_-1", "1_1_1"])
def test_what_is_no_task(text):
    with pytest.raises(ConfigurationError, match="is no task.*0_3"):
        TaskId.parse(text)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"num_standby_replicas": -1}, "num_standby_replicas is -1.*make it 0 or more"),
        ({"max_warmup_replicas": 0}, "max_warmup_replicas is 0.*make it 1 or more"),
        ({"acceptable_recovery_lag": -1}, "acceptable_recovery_lag is -1"),
    ],
)
def test_settings_that_cannot_be(config, message):
    with pytest.raises(ConfigurationError, match=message):
        AssignmentConfig(**config)


def test_hosts_that_cannot_be():
    with pytest.raises(ConfigurationError, match="has 0 consumers"):
        HostState(UUID(int=1), 0)
    twice = [HostState(UUID(int=1), 1)] * 2
    for hosts in ([], twice):
        with pytest.raises(ConfigurationError, match="there is no host, or two have one process id"):
            assign_highly_available(hosts, [TaskId(0, 0)], [], AssignmentConfig())
