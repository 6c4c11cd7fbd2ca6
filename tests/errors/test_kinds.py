"""An error says what happened, where, and what to do next, in the driver as in the worker that raised it."""

from __future__ import annotations

import pickle

import pytest

from statelib.errors import kinds as errors


def test_the_message_has_what_where_and_the_next_step() -> None:
    error = errors.InputError("timestamp is negative", topic="flights", partition=2, offset=117, next_step="mend it")
    assert str(error) == "timestamp is negative (topic flights, partition 2, offset 117). Next: mend it"
    assert error.place == {"topic": "flights", "partition": 2, "offset": 117}


def test_unknown_places_are_left_out() -> None:
    assert str(errors.InternalError("no", topic=None)) == "no"


def test_an_error_survives_pickling_whole() -> None:
    error = errors.CorruptedDataError("a checksum differs", file="x.sst", next_step="restore it")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is errors.CorruptedDataError
    assert (copy.what, copy.next_step, copy.place) == (error.what, error.next_step, error.place)
    assert str(copy) == str(error)


def test_each_class_has_an_exit_code_of_its_own() -> None:
    kinds = errors.HindstreamError.__subclasses__()
    named = [kind for kind in kinds if kind.__module__ == errors.__name__]
    assert len({kind.exit_code for kind in named}) == len(named) == 6


def test_a_reader_can_catch_them_all() -> None:
    with pytest.raises(errors.HindstreamError):
        raise errors.FencedError("another driver won")
