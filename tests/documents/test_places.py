from __future__ import annotations

from statelib.documents.places import by_topic, place_of, topic_and_partition


def test_a_place_names_topic_and_partition() -> None:
    assert place_of("flights", 3) == "flights/3"
    assert topic_and_partition("flights/3") == ("flights", 3)


def test_numbers_of_tasks_come_together_by_topic() -> None:
    of_tasks = [{"flights/0": 7, "delays/0": 0}, {"flights/1": 9}, {}]
    assert by_topic(of_tasks) == {"flights": {0: 7, 1: 9}, "delays": {0: 0}}
