from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.topics.archive import TopicArchive
from statelib.topics.kafka_copy import CopiedRange, KafkaCopy
from statelib.topics.parquet.writer import FileLimits
from statelib.topics.slices import SourceSlice, plan_slice
from tests.reference.slices import cut
from tests.topics.data import SCHEMA, topic_records

END = 1_000


@pytest.fixture(scope="module")
def new_uri(tmp_path_factory):
    """A directory for each archive of a property test."""
    folder = tmp_path_factory.mktemp("archives")
    numbers = itertools.count()
    return lambda: str(folder / str(next(numbers)))


def cut_at(archive, until_ms, latest_of=None):
    """By partition, the offset before which the first slice ends."""
    return {part.partition: part.end_offset for part in plan_slice(archive, until_ms=until_ms, latest_of=latest_of)}


def make(uri, partitions, limits=None, attempt="a"):
    """An archive from, for each partition, its (offset, timestamp) pairs."""
    archive = TopicArchive.ensure(uri, SCHEMA, len(partitions), topic="flights")
    files = []
    for partition, records in enumerate(partitions):
        with archive.writer(partition, attempt=attempt, limits=limits) as writer:
            writer.write(topic_records([o for o, _ in records], [t for _, t in records]))
        files += writer.close()
    version = (archive.last_transaction("test") or 0) + 1
    archive.commit(files, app_id="test", app_version=version)
    return archive.refresh()


@st.composite
def partition(draw):
    """Offsets with holes; timestamps that rise and fall, negative and missing ones among them."""
    timestamps = draw(st.lists(st.none() | st.integers(-5, 40), max_size=40))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 3]), min_size=len(timestamps), max_size=len(timestamps)))
    return list(zip((np.cumsum([0, *steps])[1:]).tolist(), timestamps, strict=True))


@given(st.lists(partition(), min_size=1, max_size=3), st.lists(st.integers(-6, 45), max_size=5), st.booleans())
def test_slices_make_up_the_topic(new_uri, partitions, cuts, dense_statistics):
    """Each cut is where the plain reference has it, and slices one after the other are the whole topic."""
    limits = FileLimits(row_group_rows=3, file_rows=6) if dense_statistics else None
    archive = make(new_uri(), partitions, limits)
    positions, replayed = None, {p: [] for p in range(len(partitions))}
    for until in [*sorted(cuts), None]:
        slices = plan_slice(archive, positions, until_ms=until)
        assert [s.partition for s in slices] == list(range(len(partitions)))
        for s, records in zip(slices, partitions, strict=True):
            end = cut(records, until, archive.end_offsets()[s.partition]) if until is not None else END
            inside = [r for r in records if s.start_offset <= r[0] < s.end_offset]
            assert s.records == len(inside)
            assert [r for r in records if r[0] < s.end_offset] == [r for r in records if r[0] < end]
            replayed[s.partition] += inside
        positions = {s.partition: s.end_offset for s in slices}
    assert replayed == dict(enumerate(partitions))
    assert all(s.records == 0 for s in plan_slice(archive, positions)), "then there is nothing left"


@given(st.lists(partition(), min_size=1, max_size=3), st.integers(-6, 45), st.integers(-6, 45), st.booleans())
def test_a_record_from_the_future_ends_no_slice(new_uri, partitions, until, latest, small_files):
    limits = FileLimits(row_group_rows=3, file_rows=6) if small_files else None
    archive = make(new_uri(), partitions, limits)
    for p, records in enumerate(partitions):
        there = [(offset, None if time is not None and time > latest else time) for offset, time in records]
        expected = cut(there, until, archive.end_offsets()[p])
        assert cut_at(archive, until, lambda _: latest)[p] == expected


@given(st.lists(partition(), min_size=1, max_size=2), st.integers(0, 45), st.sampled_from([0, 86_400_000]))
def test_what_waits_behind_a_record_is_told(new_uri, partitions, until, far):
    """A record that is far from the slice's end, or ends it before it has begun, where older ones are behind it."""
    moved = [[(o, t if t is None or t < until else t + far) for o, t in records] for records in partitions]
    archive = make(new_uri(), moved, FileLimits(row_group_rows=3, file_rows=6))
    for part, records in zip(plan_slice(archive, until_ms=until), moved, strict=True):
        end = cut(records, until, END)
        behind = [time for offset, time in records if offset > end and time is not None and time < until]
        is_told = bool(behind) and (bool(far) or not part.records)
        assert (part.stopped_by is not None) == is_told
        if part.stopped_by is not None:
            assert (part.stopped_by.offset, part.stopped_by.timestamp_ms) == (end, dict(records)[end])


def test_the_archive_may_grow_between_slices(tmp_path):
    uri = str(tmp_path / "t")
    archive = make(uri, [[(0, 10), (1, 20)], []])
    first = plan_slice(archive, until_ms=20)
    archive = make(uri, [[(2, 5), (3, 30)], [(4, 1)]], attempt="b")
    second = plan_slice(archive, {s.partition: s.end_offset for s in first} | {1: 4}, until_ms=30)
    assert first == [SourceSlice("flights", 0, 0, 1, 1), SourceSlice("flights", 1, 0, 0, 0)]
    assert second == [SourceSlice("flights", 0, 1, 3, 2), SourceSlice("flights", 1, 4, 5, 1)]


def test_only_the_file_with_the_cut_is_opened(tmp_path):
    limits = FileLimits(row_group_rows=5, file_rows=10)
    archive = make(str(tmp_path / "t"), [[(n, n) for n in range(100)]], limits)
    files = archive.files(0)
    for file in files[:4] + files[5:]:
        archive.storage.delete(file.path)
    assert cut_at(archive, 47) == {0: 47}
    assert cut_at(archive, 1_000) == {0: 100}
    assert plan_slice(archive, {0: 13}, until_ms=47) == [SourceSlice("flights", 0, 13, 47, 34)]
    with pytest.raises(InputError, match="missing"):
        cut_at(archive, 20)


def test_timestamps_without_statistics_are_read(tmp_path):
    """Beyond the year 9999 the log has no bounds."""
    far = 400_000_000_000_000
    archive = make(str(tmp_path / "t"), [[(0, 5), (1, far), (2, far + 1)]])
    assert archive.files(0)[0].max_timestamp_ms is None
    assert cut_at(archive, far) == {0: 1}
    assert cut_at(archive, far + 2) == {0: 3}


def test_a_slice_may_end_at_offsets(tmp_path):
    archive = make(str(tmp_path / "t"), [[(0, 1), (5, 2), (6, 3)], [(0, 1)]])
    assert plan_slice(archive, {0: 0, 1: 1}, end_offsets={0: 6, 1: 1}) == [
        SourceSlice("flights", 0, 0, 6, 2),
        SourceSlice("flights", 1, 1, 1, 0),
    ]
    for ends, message in (({0: 8, 1: 1}, "cannot end at offset 8"), ({0: 0, 1: 0}, "offset 0"), ({0: 6}, "each of")):
        with pytest.raises(ConfigurationError, match=message):
            plan_slice(archive, {0: 0, 1: 1}, end_offsets=ends)
    with pytest.raises(ConfigurationError, match="either"):
        plan_slice(archive, until_ms=1, end_offsets={0: 1, 1: 1})


def test_a_time_before_the_position_gives_nothing(tmp_path):
    archive = make(str(tmp_path / "t"), [[(0, 10), (1, 20), (2, 5), (3, 30)]])
    assert plan_slice(archive, {0: 3}, until_ms=15) == [SourceSlice("flights", 0, 3, 3, 0)]


def test_what_the_archive_cannot_give(tmp_path):
    archive = make(str(tmp_path / "t"), [[(7, 1), (8, 2)], [(0, 1)]])
    assert plan_slice(archive)[0] == SourceSlice("flights", 0, 7, 9, 2), "a first slice starts at the first offset"
    with pytest.raises(InputError, match=r"needs offset 3, but the topic archive starts at 7.*partition 0"):
        plan_slice(archive, {0: 3, 1: 0})
    assert plan_slice(archive, {0: 3, 1: 0}, on_lost="accept")[0] == SourceSlice("flights", 0, 7, 9, 2)
    with pytest.raises(InputError, match=r"ends at offset 9, but the job has replayed up to 12"):
        plan_slice(archive, {0: 12, 1: 0}, on_lost="accept")
    with pytest.raises(ConfigurationError, match="2 partitions now, the job has positions in 3"):
        plan_slice(archive, {0: 7, 1: 0, 2: 0})


def test_a_copy_speaks_for_its_holes(tmp_path):
    """Before the first record, behind the last one, and where there is none: markers, and what was compacted."""
    archive = TopicArchive.create(str(tmp_path / "flights"), SCHEMA, 2, topic="flights")

    def copied(partition, offsets, ranges):
        with archive.writer(partition, attempt=f"a{offsets[0]}") as writer:
            writer.write(topic_records(offsets, offsets))
        KafkaCopy(archive.refresh()).advance(writer.close(), ranges, origin="cluster/topic")
        return archive.refresh()

    first = copied(0, [6, 8], {0: CopiedRange(5, 20), 1: CopiedRange(7, 9)})
    assert plan_slice(first) == [SourceSlice("flights", 0, 5, 20, 2), SourceSlice("flights", 1, 7, 9, 0)]
    assert cut_at(first, 8) == {0: 8, 1: 9}
    assert cut_at(first, 9) == {0: 20, 1: 9}
    second = copied(1, [600], {1: CopiedRange(9, 601)})
    later = plan_slice(second, {0: 20, 1: 9})
    assert later == [SourceSlice("flights", 0, 20, 20, 0), SourceSlice("flights", 1, 9, 601, 1)]
    with pytest.raises(InputError, match="the job needs offset 4, but the topic archive starts at 5"):
        plan_slice(second, {0: 4, 1: 9})
    with pytest.raises(InputError, match="the topic archive ends at offset 601, but the job has replayed up to 602"):
        plan_slice(second, {0: 20, 1: 602})
