from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.commits import CommitLog, JobLayout, Runs, topic_path
from statelib.commits.layout import parse_run_id, run_id
from statelib.documents.document import FORMAT_VERSION
from statelib.documents.manifests import Audit, Commit, CommittedTask, StateFile, StateManifest, TaskPosition
from statelib.documents.plans import Plan, PlannedTask, SourceRange, TakenOver
from statelib.documents.topologies import Evolution, NodeDescription, StoreDescription, TopologyDescription
from statelib.documents.upkeep import Maintenance, Rewrite, Rewriting, Rollback
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.storage import Storage
from statelib.topics.files import ArchiveFile


def a_commit(n: int) -> Commit:
    return Commit(
        job="j", commit=n, run_id=run_id(n, 1), fingerprint="f", until_ms=None, sources=(), tasks={}, sinks=(),
        created_at_ms=n,
    )  # fmt: skip


class Counting(Storage):
    """A storage that counts its requests and cannot list."""

    requests = 0

    def get(self, path):
        self.requests += 1
        return super().get(path)

    def size(self, path):
        self.requests += 1
        return super().size(path)

    def list(self, prefix=""):
        raise AssertionError("the head is found without a listing")


def log_of(commits: int) -> tuple[Counting, CommitLog]:
    storage = Counting("memory://")
    log = CommitLog(storage, "j")
    for n in range(1, commits + 1):
        assert log.create(a_commit(n))
    storage.requests = 0
    return storage, log


@given(st.integers(0, 70), st.one_of(st.none(), st.integers(-3, 100), st.sampled_from([b"", b"{", b"[]", b"null"])))
def test_head_is_found_whatever_the_hint_says(commits, hint):
    storage, log = log_of(commits)
    if isinstance(hint, bytes):
        storage.put(JobLayout("j").head_hint, hint)
    elif hint is not None:
        log.advise_head(hint)
    head = log.head()
    assert (head.commit if head else 0) == commits
    assert storage.requests <= 2 * math.log2(commits + 1) + 6


def test_a_good_hint_costs_four_requests():
    storage, log = log_of(50)
    log.advise_head(50)
    assert log.head() == a_commit(50)
    assert storage.requests == 4  # the hint, the commit that it names, the one after, and reading the head


def test_history_is_newest_first():
    _, log = log_of(5)
    assert [commit.commit for commit in log.history()] == [5, 4, 3, 2, 1]
    assert [commit.commit for commit in log.history(2)] == [5, 4]
    assert list(log_of(0)[1].history(3)) == []


def test_a_number_is_given_once():
    _, log = log_of(1)
    other = a_commit(1).model_copy(update={"created_at_ms": 7})
    assert not log.create(other)
    assert log.read(1) == a_commit(1)


def test_a_missing_commit_names_the_file():
    _, log = log_of(1)
    with pytest.raises(CorruptedDataError, match=r"commit 2 of job j is missing .*/00000000000000000002.json"):
        log.read(2)


def test_damaged_documents_are_told_from_newer_ones():
    storage, log = log_of(1)
    path = log.layout.commit(1)
    good = storage.get(path)
    storage.put(path, good[:-20])
    with pytest.raises(CorruptedDataError, match=r"not JSON.*00000001.json"):
        log.read(1)
    storage.put(path, good.replace(b'"created_at_ms"', b'"created"'))
    with pytest.raises(CorruptedDataError, match="checksum is not that of its content"):
        log.read(1)
    storage.put(path, b"[]")
    with pytest.raises(CorruptedDataError, match="not a JSON object"):
        log.read(1)
    storage.put(path, a_commit(1).model_copy(update={"format_version": FORMAT_VERSION + 1}).encode())
    with pytest.raises(ConfigurationError, match=rf"format version {FORMAT_VERSION + 1}.*install the newer"):
        log.read(1)


def test_every_flipped_bit_of_a_commit_is_noticed():
    """Or changes nothing, as a space that becomes another white space."""
    position = TaskPosition(task_id="0_0", commit=7, fingerprint="f", source_offsets={"t/0": 12}, stream_time=5)
    task = CommittedTask(
        state=StateManifest(files=(StateFile(name="1.sst", sha256="ab", size_bytes=3),)), position=position
    )
    commit = a_commit(7).model_copy(update={"tasks": {"0_0": task}})
    good = commit.encode()
    harmless = 0
    for bit in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            assert Commit.decode(bytes(damaged), file="c") == commit
        except CorruptedDataError:
            continue
        harmless += 1
    assert harmless < good.count(b" ") + good.count(b"\n")


def test_commit_bytes():
    """What an older Hindstream has written stays readable: these bytes never change for a version."""
    end = b' "sinks": [],\n "sources": [],\n "tasks": {},\n "until_ms": null\n}\n'
    assert a_commit(3).encode() == (
        b'{\n "checksum": "a92665e58a8371d7c44046c238a2e914ac6da0fd11560a45790377b637172985",\n'
        b' "commit": 3,\n "created_at_ms": 3,\n "end_of_input": "hold",\n "evolution": null,\n "fingerprint": "f",\n'
        b' "forked_from": null,\n "format_version": 9,\n "job": "j",\n "repaired_by": null,\n "rolled_back_to": null,\n'
        b' "run_id": "00000003-1",\n'
        b' "semantics": null,\n "sinks": [],\n "sources": [],\n "taken_over": null,\n "tasks": {},\n'
        b' "until_ms": null\n}\n'
    )
    eighth = (
        b'{\n "checksum": "b44b92d499d48aae9a66f7a8b577326efb2c9742b204d616bc9d50efe34bf449",\n'
        b' "commit": 3,\n "created_at_ms": 3,\n "end_of_input": "hold",\n "evolution": null,\n "fingerprint": "f",\n'
        b' "forked_from": null,\n "format_version": 8,\n "job": "j",\n "rolled_back_to": null,\n'
        b' "run_id": "00000003-1",\n'
        b' "semantics": null,\n "sinks": [],\n "sources": [],\n "taken_over": null,\n "tasks": {},\n'
        b' "until_ms": null\n}\n'
    )
    seventh = (
        b'{\n "checksum": "b23a6807a41c0d625f30d0ab404b1c0a0e87fcc5ecebba5af772134164963152",\n'
        b' "commit": 3,\n "created_at_ms": 3,\n "end_of_input": "hold",\n "evolution": null,\n "fingerprint": "f",\n'
        b' "format_version": 7,\n "job": "j",\n "rolled_back_to": null,\n "run_id": "00000003-1",\n'
        b' "semantics": null,\n "sinks": [],\n "sources": [],\n "taken_over": null,\n "tasks": {},\n'
        b' "until_ms": null\n}\n'
    )
    sixth = (
        b'{\n "checksum": "9a319d9be5e9d98f02526522ab4fbd5068fb618e4457dfac77a26a14b0713a46",\n'
        b' "commit": 3,\n "created_at_ms": 3,\n "end_of_input": "hold",\n "evolution": null,\n "fingerprint": "f",\n'
        b' "format_version": 6,\n "job": "j",\n "rolled_back_to": null,\n "run_id": "00000003-1",\n'
        b' "semantics": null,\n "sinks": [],\n "sources": [],\n "taken_over": null,\n "tasks": {},\n'
        b' "until_ms": null\n}\n'
    )
    fifth = (
        b'{\n "checksum": "1ed217f406adb8f4e38f27acb81ab7713e0eacdb9b65ccaab41fb20781e4b6a2",\n'
        b' "commit": 3,\n "created_at_ms": 3,\n "end_of_input": "hold",\n "evolution": null,\n "fingerprint": "f",\n'
        b' "format_version": 5,\n "job": "j",\n "rolled_back_to": null,\n "run_id": "00000003-1",\n'
        b' "semantics": null,\n "sinks": [],\n "sources": [],\n "taken_over": null,\n "tasks": {},\n'
        b' "until_ms": null\n}\n'
    )
    fourth = (
        b'{\n "checksum": "e978c193f5326426a5cd0687c1382eedd17954947ebde8646ea724e848609a51",\n'
        b' "commit": 3,\n "created_at_ms": 3,\n "end_of_input": "hold",\n "evolution": null,\n "fingerprint": "f",\n'
        b' "format_version": 4,\n "job": "j",\n "rolled_back_to": null,\n "run_id": "00000003-1",\n'
        b' "semantics": null,\n' + end
    )
    rest = b' "job": "j",\n "run_id": "00000003-1",\n' + end
    third = (
        b'{\n "checksum": "69f8913be669911344989521e8e1fe87c32a3bf03560aecca677a53a4d44d7ce",\n'
        b' "commit": 3,\n "created_at_ms": 3,\n "end_of_input": "hold",\n "fingerprint": "f",\n'
        b' "format_version": 3,\n' + rest
    )
    second = (
        b'{\n "commit": 3,\n "created_at_ms": 3,\n "end_of_input": "hold",\n "fingerprint": "f",\n'
        b' "format_version": 2,\n' + rest
    )
    first = b'{\n "commit": 3,\n "created_at_ms": 3,\n "fingerprint": "f",\n "format_version": 1,\n' + rest
    for version, written in (
        (1, first),
        (2, second),
        (3, third),
        (4, fourth),
        (5, fifth),
        (6, sixth),
        (7, seventh),
        (8, eighth),
    ):
        commit = Commit.decode(written, file="c")
        assert commit == a_commit(3).model_copy(update={"format_version": version})
        assert Commit.decode(commit.encode(), file="c") == commit
        if version < 3:  # as if the version of one that has a checksum had been flipped
            with pytest.raises(CorruptedDataError, match="checksum"):
                Commit.decode(written.replace(b"{\n", b'{\n "checksum": "ab",\n', 1), file="c")


@given(st.integers(1, 10**10), st.integers(1, 10**6))
def test_run_ids_round_trip(commit, attempt):
    assert parse_run_id(run_id(commit, attempt)) == (commit, attempt)


@pytest.mark.parametrize("name", ["", "1-1", "00000001", "00000001-0", "00000001-01x", "x00000001-1"])
def test_other_names_are_no_run_ids(name):
    assert parse_run_id(name) is None


def test_a_run_without_documents():
    runs = Runs(Storage("memory://"), "j")
    assert runs.plan("00000001-1") is None
    assert runs.staged("00000001-1") is None
    assert runs.audit("00000001-1") is None
    assert list(runs.attempts(1)) == []


def test_document_bytes():
    """As for `test_commit_bytes`: the other documents."""
    source = SourceRange(topic="t", partition=0, start_offset=3, end_offset=9, records=5)
    plan = Plan(
        job="j", run_id="00000001-1", commit=1, fingerprint="f", until_ms=7, sources=(), created_at_ms=8,
        tasks=(PlannedTask(task_id="0_0", sub_topology=0, partition=0, sources=(source,)),), sink_partitions={"s": 2},
    )  # fmt: skip
    assert b"".join(plan.encode().split()) == (
        b'{"begun_anew":null,"checksum":"e7e5f288a683a188826654296726abaa7c2e395ec85c13815acc0bda456ef1da",'
        b'"commit":1,"created_at_ms":8,"end_of_input":"hold","evolution":null,"fingerprint":"f","forked_from":null,"format_version":9,'
        b'"future_records":[],"job":"j","leeway":null,"max_future":null,"repaired_by":null,"rolled_back_to":null,"run_id":"00000001-1","sample_keys":null,"semantics":null,'
        b'"sink_partitions":{"s":2},"sources":[],"taken_over":null,"tasks":[{"partition":0,"sources":[{"end_offset":9,"partition":0,'
        b'"records":5,"start_offset":3,"topic":"t"}],"sub_topology":0,"task_id":"0_0"}],"unseen":[],"until_ms":7}'
    )
    audit = Audit(run_id="00000001-1", success=True, checks=(), data_docs=None, seconds=0.5)
    assert b"".join(audit.encode().split()) == (
        b'{"checks":[],"checksum":"0aa8a17f50f2dc89474897466bb00305d6ef77b6082b7bbed7083e771536f0fc",'
        b'"data_docs":null,"format_version":9,"run_id":"00000001-1","seconds":0.5,"success":true}'
    )
    assert b"".join(Maintenance(oldest_restorable=4, cleaned_through=3, swept_through=5).encode().split()) == (
        b'{"checksum":"8567d1aff9a9555e6c85c4ad1ef08f37fd9049b86f03f51f2b45dd125d809593",'
        b'"cleaned_through":3,"forks":[],"format_version":9,"oldest_restorable":4,"swept_through":5}'
    )
    file = StateFile(name="7.sst", sha256="ab", size_bytes=3, run_id="00000001-1")
    assert json.loads(file.model_dump_json()) == {
        "job": None, "name": "7.sst", "run_id": "00000001-1", "sha256": "ab", "size_bytes": 3,
    }  # fmt: skip
    notice = Rollback(topic="t", job="j", commit=5, rolled_back_to=2, end_offsets={0: 7})
    assert b"".join(notice.encode().split()) == (
        b'{"checksum":"6282b7d227cef5c0e03fab00913144e19265635720d2afd112442102ac8bd236",'
        b'"commit":5,"end_offsets":{"0":7},"format_version":9,"job":"j","rolled_back_to":2,"topic":"t"}'
    )
    small = ArchiveFile(
        path="partition=0/00-a.parquet", partition=0, rows=1, size_bytes=2, first_offset=3, last_offset=3,
        min_timestamp_ms=None, max_timestamp_ms=None,
    )  # fmt: skip
    rewrite = Rewrite(
        topic="t", job="j", rewrite=4, replaced=(small, small), files=(small,), cleaned={2: 7}, created_at_ms=9
    )
    file_json = (
        b'{"first_offset":3,"last_offset":3,"max_timestamp_ms":null,"min_timestamp_ms":null,"null_keys":null,'
        b'"null_values":null,"partition":0,"path":"partition=0/00-a.parquet","rows":1,"sha256":null,"size_bytes":2}'
    )
    assert b"".join(rewrite.encode().split()) == (
        b'{"checksum":"c217ecfe67413ca02b37c7a1f3d120dce5c3a0f99473cc51cc65c99004090884","cleaned":{"2":7},"created_at_ms":9,"files":['
        + file_json
        + b'],"format_version":9,"job":"j","replaced":['
        + file_json
        + b","
        + file_json
        + b'],"rewrite":4,"topic":"t"}'
    )
    assert b"".join(Rewriting(looked_through=8, reclaimed={"t": 3}).encode().split()) == (
        b'{"checksum":"9e5c8344d5db11d8d4d076f21220c1e7f86736529e97c465e9258e81e4c6612c","format_version":9,"looked_through":8,'
        b'"reclaimed":{"t":3}}'
    )
    node = NodeDescription(name="N", sub_topology=0, parents=("A",), settings={"node": "processor"})
    store = StoreDescription(
        name="s", kind="window", node="N", sub_topology=0, families=("s", "s.by-start"),
        settings={"retention_ms": 7}, arrow_schema="AA==",
    )  # fmt: skip
    topology = TopologyDescription(fingerprint="f", nodes=(node,), stores=(store,))
    assert b"".join(topology.encode().split()) == (
        b'{"checksum":"f1759a2a5b0798993211c49f7dc2607105fdde647b4d537311756ddb5a80b64f",'
        b'"fingerprint":"f","format_version":9,'
        b'"nodes":[{"name":"N","parents":["A"],"settings":{"node":"processor"},"sub_topology":0}],'
        b'"stores":[{"arrow_schema":"AA==","families":["s","s.by-start"],"kind":"window","name":"s","node":"N",'
        b'"settings":{"retention_ms":7},"sub_topology":0}]}'
    )
    evolution = Evolution(fingerprint="e", nodes={"N": "M"}, dropped_families={0: ("s",)}, changes=("M is gone",))
    changed = plan.model_copy(update={"evolution": evolution})
    assert Plan.decode(changed.encode(), file="p") == changed
    written = (
        b'"evolution":{"changes":["Misgone"],"dropped_families":{"0":["s"]},"filled":[],"fingerprint":"e","migrations":[],'
        b'"nodes":{"N":"M"}}'
    )
    assert written in b"".join(changed.encode().split())
    taken = TakenOver(application_id="a", changelogs={"s": {0: 7}}, times={"t/0": 9})
    begun = plan.model_copy(update={"taken_over": taken})
    assert Plan.decode(begun.encode(), file="p") == begun
    written = b'"taken_over":{"application_id":"a","changelogs":{"s":{"0":7}},"times":{"t/0":9}}'
    assert written in b"".join(begun.encode().split())
    storage, log = log_of(0)
    log.advise_head(12)
    assert storage.get(log.layout.head_hint) == b'{"commit": 12}\n'


def test_where_things_lie():
    layout = JobLayout("j")
    run = "00000003-2"
    assert layout.commit(3) == "jobs/j/commits/00000000000000000003.json"
    assert layout.topology("ab") == "jobs/j/topologies/ab.json"
    assert layout.plan(run) == "jobs/j/runs/00000003-2/plan.json"
    assert layout.staged(run) == "jobs/j/runs/00000003-2/staged.json"
    assert layout.audit(run) == "jobs/j/runs/00000003-2/audit.json"
    assert layout.state("0_1") == "jobs/j/state/0_1"
    assert layout.staging(run) == "jobs/j/staging/00000003-2"
    assert topic_path("t") == "topics/t"
