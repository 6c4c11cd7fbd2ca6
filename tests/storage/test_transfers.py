from __future__ import annotations

import threading

import pytest

from statelib.errors import InputError
from statelib.storage.transfers import in_parallel


@pytest.mark.parametrize("at_once", [1, 3, 64])
def test_results_come_in_the_items_order(at_once):
    assert in_parallel(lambda n: n * n, range(40), at_once) == [n * n for n in range(40)]
    assert in_parallel(lambda n: n, [], at_once) == []


def test_so_many_run_at_once_and_no_more():
    meeting = threading.Barrier(3, timeout=30)
    lock, running, most = threading.Lock(), [], []

    def work(_):
        with lock:
            running.append(1)
            most.append(len(running))
        meeting.wait()
        with lock:
            running.pop()

    in_parallel(work, range(6), 3)  # would wait for ever if fewer than three came to the barrier
    assert max(most) == 3


def test_the_first_error_ends_it():
    begun = []

    def work(n):
        begun.append(n)
        raise InputError(f"{n} is odd")

    with pytest.raises(InputError, match="0 is odd"):
        in_parallel(work, range(1000), 2)
    assert len(begun) < 1000
