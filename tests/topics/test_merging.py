"""Files of a topic are merged: whoever reads it finds the same records."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.topics.archive import TopicArchive
from statelib.topics.merging import merge
from statelib.topics.parquet.footer import SEAL
from tests.topics.data import SCHEMA, topic_records


@pytest.fixture(params=["local", "s3"])
def archive(request, tmp_path) -> TopicArchive:
    if request.param == "s3":
        options = request.getfixturevalue("s3_options")
        return TopicArchive.create(f"s3://warehouse/{tmp_path.name}/flights", SCHEMA, 2, options=options)
    return TopicArchive.create(str(tmp_path / "flights"), SCHEMA, 2)


def filled(archive, *parts):
    """A commit for each part: records of partition 1."""
    for n, records in enumerate(parts):
        with archive.writer(1, attempt=f"a{n}") as writer:
            writer.write(records)
        archive.commit(writer.close(), app_id="job", app_version=n + 1, modification_time_ms=100 * n)
    return archive.refresh()


def put_in_place(archive, gone, files, n=1):
    archive.replace(gone, files, [("rewrites", n)], time_ms=5)
    return archive.refresh()


def test_all_records_are_those_that_were(archive):
    holes = topic_records([10, 11, 17], timestamps=[5, -70_000_000_000_000, 6])
    headers = pa.array([[{"key": "h", "value": b"v"}], None], SCHEMA.field("headers").type)
    with_headers = topic_records([20, 21])
    with_headers = with_headers.set_column(with_headers.schema.get_field_index("headers"), "headers", headers)
    before = filled(archive, topic_records(range(5)), holes, with_headers, topic_records([30]))
    files = before.files(1)
    merged = merge(before, files[:3], attempt="m")
    assert (merged.rows, merged.first_offset, merged.last_offset) == (10, 0, 21)
    after = put_in_place(before, files[:3], [merged])
    assert after.files(1) == [
        merged.in_log.model_copy(update=dict.fromkeys(("null_keys", "null_values", "sha256"))),
        *files[3:],
    ]
    assert after.reader(1).read_all() == before.reader(1).read_all()
    assert after.reader(1, 11, 21).read_all() == before.reader(1, 11, 21).read_all()
    assert (after.end_offsets(), after.rows, after.last_transaction("job")) == ({0: 0, 1: 31}, 11, 4)
    assert SEAL in after.storage.get(merged.path)
    options = dict(archive.storage.options)
    seen, were = (
        DeltaTable(archive.uri, version=a.version, storage_options=options).to_pyarrow_table().sort_by("offset")
        for a in (after, before)
    )
    assert seen == were


def test_it_is_still_known_when_the_last_records_came(archive):
    before = filled(archive, *(topic_records([n]) for n in range(5)))
    files = before.files(1)
    merged = [merge(before, files[:2], attempt="m"), merge(before, files[2:4], attempt="m")]
    after = put_in_place(before, files[:4], merged)
    assert [after.archived_at_ms(file) for file in after.files(1)] == [100, 300, 400]


def test_it_happens_once(archive):
    before = filled(archive, topic_records([0]), topic_records([1]))
    files = before.files(1)
    merged = merge(before, files, attempt="m")
    after = put_in_place(before, files, [merged])
    assert put_in_place(before, files, [merged]).version == after.version == before.version + 1
    with pytest.raises(ConfigurationError, match="no longer part of it"):
        put_in_place(before, files, [merged], n=2)
    archive.commit(before.files(1), app_id="job", app_version=2)  # a publisher that comes late
    assert archive.refresh().version == after.version


@pytest.mark.parametrize("at", [100, -30, None], ids=["a page", "the footer", "missing"])
def test_a_damaged_file_is_not_merged(archive, at):
    before = filled(archive, topic_records(range(50)), topic_records([50]))
    path = before.files(1)[0].path
    data = bytearray(before.storage.get(path))
    before.storage.delete(path)
    if at is not None:
        data[at] ^= 1
        before.storage.put(path, bytes(data))
    with pytest.raises(InputError, match="restore the file from another copy") as told:
        merge(before, before.files(1), attempt="m")
    assert path in str(told.value)
    assert not [entry for entry in before.storage.list() if "-m." in entry.path]
