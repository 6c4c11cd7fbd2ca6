from __future__ import annotations

import threading

import pytest

from statelib.errors.kinds import InputError
from statelib.storage.transfers import in_parallel, look_ahead


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


@pytest.mark.parametrize("at_once", [1, 3, 64])
def test_looking_ahead_keeps_the_items_order(at_once):
    assert list(look_ahead(lambda n: n * n, iter(range(40)), at_once)) == [n * n for n in range(40)]
    assert list(look_ahead(lambda n: n, [], at_once)) == []


def test_it_looks_so_far_ahead_and_no_further():
    meeting, begun = threading.Barrier(3, timeout=30), []

    def work(n):
        begun.append(n)
        meeting.wait()
        return n

    found = look_ahead(work, range(9), 3)
    assert begun == []
    assert next(found) == 0  # would wait for ever if fewer than three came to the barrier
    assert sorted(begun) == [0, 1, 2]
    meeting.abort()
    with pytest.raises(threading.BrokenBarrierError):
        list(found)


@pytest.mark.parametrize("at_once", [1, 4])
def test_what_comes_before_an_error_is_there(at_once):
    begun, taken = [], []

    def work(n):
        begun.append(n)
        if n == 5:
            raise InputError("5 is odd")
        return n

    found = look_ahead(work, range(1000), at_once)
    with pytest.raises(InputError, match="5 is odd"):
        taken.extend(found)
    assert taken == [0, 1, 2, 3, 4]
    assert len(begun) < 20


def test_who_needs_no_more_ends_it():
    begun = []
    found = look_ahead(lambda n: begun.append(n) or n, range(1000), 4)
    assert next(found) == 0
    found.close()
    assert len(begun) <= 4
