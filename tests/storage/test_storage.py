from __future__ import annotations

import errno
import hashlib
import io
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError

from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.settings.storage_options import RequestLimits
from statelib.storage import ObjectNotFoundError, Storage, reason_without_secrets
from statelib.storage.errors import mapped_errors
from statelib.topics.archive import TopicArchive


@pytest.fixture(params=["local", "memory", "s3"])
def storage(request, tmp_path: Path) -> Storage:
    if request.param == "s3":
        return Storage(f"s3://warehouse/{tmp_path.name}", request.getfixturevalue("s3_options"))
    return Storage(str(tmp_path / "root") if request.param == "local" else "memory://")


def test_put_and_get(storage):
    storage.put("a/b.json", b"1")
    storage.put("a/b.json", b"22")
    assert storage.get("a/b.json") == b"22"
    assert storage.get_if_present("a/b.json") == b"22"
    assert storage.get_range("a/b.json", 1, 1) == b"2"
    assert storage.size("a/b.json") == 2
    assert storage.exists("a/b.json")


def test_what_is_absent(storage):
    assert storage.get_if_present("a/b") is None
    assert not storage.exists("a/b")
    for call in (storage.get, storage.size, storage.open_input):
        with pytest.raises(ObjectNotFoundError, match="no such object"):
            call("a/b")
    storage.delete("a/b")
    storage.delete(["a/b", "a/c"])
    assert storage.list() == []


def test_put_if_absent(storage):
    assert storage.put_if_absent("commits/1", b"mine")
    assert not storage.put_if_absent("commits/1", b"theirs")
    assert storage.get("commits/1") == b"mine"


def test_list_is_ordered_and_does_not_mistake_a_name_for_a_folder(storage):
    for path in ("b/2", "b/1", "b/deep/er/3", "bb/4", "a"):
        storage.put(path, b"123")
    assert [entry.path for entry in storage.list("b")] == ["b/1", "b/2", "b/deep/er/3"]
    assert [entry.path for entry in storage.list()] == ["a", "b/1", "b/2", "b/deep/er/3", "bb/4"]
    assert {entry.size_bytes for entry in storage.list()} == {3}
    storage.delete(["b/1", "b/deep/er/3"])
    assert [entry.path for entry in storage.list("b")] == ["b/2"]


def test_folders_are_those_right_below(storage):
    for path in ("b/x/1", "b/y/deep/2", "b/3", "bb/z/4", "a"):
        storage.put(path, b"1")
    assert storage.folders("b") == ("b/x", "b/y")
    assert storage.folders() == ("b", "bb")
    assert storage.folders("none") == storage.folders("b/x") == ()
    assert storage.within("b").folders() == ("x", "y")


def test_empty_folders_go(tmp_path):
    storage = Storage(str(tmp_path))
    for path in ("b/x/1", "b/x/deep/2", "b/y/3"):
        storage.put(path, b"1")
    storage.delete(["b/x/1", "b/x/deep/2"])
    storage.remove_empty_folders("b")
    storage.remove_empty_folders("none")
    assert storage.folders("b") == ("b/y",)
    storage.delete("b/y/3")
    storage.remove_empty_folders("b")
    assert storage.folders() == ()


def test_list_from_a_path_on(storage):
    for path in ("t/p=0/007-a", "t/p=0/007-b", "t/p=0/010-a", "t/p=1/008-a", "u/1"):
        storage.put(path, b"1")
    assert [e.path for e in storage.list("t/p=0", after="t/p=0/007")] == ["t/p=0/007-a", "t/p=0/007-b", "t/p=0/010-a"]
    assert [e.path for e in storage.list("t/p=0", after="t/p=0/007-a")] == ["t/p=0/007-b", "t/p=0/010-a"]
    assert storage.list("t/p=0", after="t/p=0/011") == []
    assert [e.path for e in storage.within("t").list("p=0", after="p=0/008")] == ["p=0/010-a"]
    assert storage.size_if_present("u/1") == 1
    assert storage.size_if_present("u/2") is None


def test_a_listing_of_more_than_a_page(storage):
    """S3 gives a thousand names an answer; what is deleted at once goes in as many requests as it takes."""
    paths = [f"many/p={n % 3}/{n:05d}" for n in range(1_203)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: storage.put(path, b"1"), paths))
    assert [entry.path for entry in storage.list("many")] == sorted(paths)
    assert [entry.path for entry in storage.list("many", after="many/p=1/00900")] == sorted(
        path for path in paths if path > "many/p=1/00900"
    )
    storage.put("manyfold", b"1")
    storage.delete([*paths, "many/none"])
    assert storage.list("many") == []
    assert [entry.path for entry in storage.list()] == ["manyfold"]


def test_within_shares_the_objects(storage):
    inner = storage.within("topics/flights")
    inner.put("x", b"1")
    assert storage.get("topics/flights/x") == b"1"
    assert [entry.path for entry in inner.list()] == ["x"]
    assert inner.uri("x") == storage.uri("topics/flights/x")


def test_an_object_is_read_part_by_part(storage):
    content = bytes(range(256)) * (9 << 12)  # more than one request to an object store
    storage.put("state/file", content)
    parts = [bytes(part) for part in storage.chunks("state/file")]
    assert len(parts) > 1
    assert b"".join(parts) == content
    with pytest.raises(ObjectNotFoundError):
        next(iter(storage.chunks("state/other")))


def test_upload_and_download(storage, tmp_path):
    content = os.urandom(12 << 20)  # more than one part of an upload
    (tmp_path / "from").write_bytes(content)
    storage.upload(tmp_path / "from", "state/file")
    sha256 = hashlib.sha256(content).hexdigest()
    assert storage.download("state/file", tmp_path / "deep" / "to") == sha256
    assert storage.digest("state/file") == (len(content), sha256)
    with pytest.raises(ObjectNotFoundError):
        storage.digest("state/other")
    assert (tmp_path / "deep" / "to").read_bytes() == content
    with pytest.raises(ObjectNotFoundError):
        storage.download("state/other", tmp_path / "deep" / "other")
    for no_object in ("state", "state/file/below"):
        with pytest.raises(ObjectNotFoundError):
            storage.download(no_object, tmp_path / "deep" / "other")
    assert [entry.name for entry in (tmp_path / "deep").iterdir()] == ["to"]


def test_files(storage):
    with storage.open_output("a/file") as output:
        for _ in range(3):
            output.write(b"0123456789" * (1 << 19))
    with storage.open_input("a/file") as source:
        assert source.size() == 15 << 20
        source.seek(5_000_005)
        assert source.read(10) == b"5678901234"
    with pytest.raises(InputError, match="already"):
        storage.open_output("a/file")


@pytest.mark.parametrize("mib", [1, 15])
def test_an_object_whose_size_is_told(storage, monkeypatch, mib):
    """A small one is there with one request; a large one is looked up, as it is read by ranges."""
    storage.put("a/file", b"0123456789abcdef" * (mib << 16))
    looks, head = [], obstore.head
    monkeypatch.setattr(obstore, "head", lambda *args: looks.append(args) or head(*args))
    with storage.open_input("a/file", size_bytes=mib << 20) as source:
        assert source.size() == mib << 20
        source.seek(1_000_005)
        assert source.read(6) == b"56789a"
    assert len(looks) == (0 if storage.is_local or mib == 1 else 1)
    with storage.open_input("a/file", size_bytes=7) as source:
        assert source.size() == mib << 20  # the caller notices
    with pytest.raises(ObjectNotFoundError):
        storage.open_input("a/other", size_bytes=mib << 20)


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "../a", "a/../b", "a b", "ü", "a#1", "a%20b", "."])
def test_paths_that_not_every_store_can_hold_are_refused(storage, path):
    with pytest.raises(ConfigurationError, match="every store"):
        storage.put(path, b"")


def test_local_paths(tmp_path):
    storage = Storage(f"file://{tmp_path}/root")
    storage.within("a").put("b", b"1")
    assert storage.is_local
    assert storage.within("a").local_path("b") == tmp_path / "root" / "a" / "b"
    assert storage.uri("a/b") == str(tmp_path / "root" / "a" / "b")
    assert (tmp_path / "root" / "a" / "b").read_bytes() == b"1"
    assert Storage("memory://").local_path("b") is None


def test_pickling_keeps_the_place(tmp_path):
    storage = Storage(str(tmp_path)).within("a")
    storage.put("b", b"1")
    assert pickle.loads(pickle.dumps(storage)).get("b") == b"1"
    with pytest.raises(ConfigurationError, match="process"):
        pickle.dumps(Storage("memory://"))


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("floppy://a", {}),
        ("s3://warehouse/x", {"no_such_option": "1"}),
        ("s3://user:password@warehouse/x", {}),
        ("s3://warehouse/x?token=1", {}),
    ],
)
def test_addresses_and_options_that_cannot_be(uri, options):
    with pytest.raises(ConfigurationError) as error:
        Storage(uri, options)
    assert "password" not in str(error.value)


def test_no_message_tells_a_secret():
    options = {
        "aws_endpoint_url": "http://127.0.0.1:1",
        "aws_access_key_id": "the-key-id",
        "aws_secret_access_key": "the-secret",
        "aws_session_token": "the-token",
        "aws_region": "us-east-1",
        "allow_http": "true",
    }
    storage = Storage("s3://warehouse", options)
    storage._store = type(storage._store).from_url(  # type: ignore[call-arg]
        "s3://warehouse", config=dict(list(options.items())[:-1]), client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )  # fmt: skip
    with pytest.raises(RetryableError, match="cannot read") as error:
        storage.get("a")
    assert not re.search("the-(key-id|secret|token)", f"{error.value} {error.value.__cause__} {storage!r}")


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("Generic S3 error: Error performing list request: Error performing GET http://h/b?list-type=2", "ListBucket"),
        ("Error performing HEAD http://h/b/a in 1ms - Server returned", "GetObject"),
        ("Error performing PUT http://h/b/a in 1ms - Server returned", "PutObject"),
        ("Generic S3 error: DeleteObjects request failed for key a", "DeleteObject"),
    ],
)
def test_a_refusal_names_the_right(said, right):
    """Whatever type the client gives it: a refused listing or deletion is a `GenericError`."""
    with (
        pytest.raises(ConfigurationError, match=rf"\(s3:{right}\): docs/security.md"),
        mapped_errors("do it", "s3://b/a", {}),
    ):
        raise GenericError(f"{said}: 403 Forbidden: AccessDenied")
    with pytest.raises(RetryableError), mapped_errors("do it", "s3://b/a", {}):
        raise GenericError(f"{said}: 503 Service Unavailable: SlowDown")


def test_without_credentials_no_right_is_missing():
    said = "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token: 403 Forbidden"
    with pytest.raises(ConfigurationError, match="check the credentials"), mapped_errors("write", "s3://b/a", {}):
        raise GenericError(said)


def test_what_cannot_be_discarded_is_left(s3, tmp_path):
    gone = Storage("s3://no-such-bucket", s3.options)
    with pytest.raises(ConfigurationError):
        gone.delete("a")
    gone.discard("a")
    (tmp_path / "a").touch()
    Storage(str(tmp_path)).discard("a")
    assert not (tmp_path / "a").exists()


def test_credentials_of_the_environment_are_used_and_not_told(s3, monkeypatch):
    for name, value in s3.credentials.items():
        monkeypatch.setenv(name, value)
    Storage("s3://warehouse/environment", s3.settings).put("a", b"1")
    assert Storage("s3://warehouse/environment", s3.settings).get("a") == b"1"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    with pytest.raises(ConfigurationError, match="SignatureDoesNotMatch") as error:
        Storage("s3://warehouse/environment", s3.settings).get("a")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody-else")
    with pytest.raises(ConfigurationError, match="InvalidAccessKeyId") as another:
        Storage("s3://warehouse/environment", s3.settings).get("a")
    hidden = "|".join(["another-secret", "somebody-else", *s3.credentials.values()])
    assert not re.search(hidden, f"{error.value} {another.value}")


def test_a_process_has_one_client_of_a_store(s3, tmp_path, monkeypatch):
    root = f"s3://warehouse/{tmp_path.name}"
    first = Storage(root, s3.options)
    same = [Storage(root, dict(reversed(s3.options.items()))), Storage(f"{root}/", s3.options), first.within("a")]
    same.append(pickle.loads(pickle.dumps(first)))
    other = [Storage(f"{root}-2", s3.options), Storage(root, s3.options | {"max_retries": "1"})]
    monkeypatch.setenv("AWS_SESSION_TOKEN", "renewed")
    other.append(Storage(root, s3.options))
    assert all(storage._store is first._store for storage in same)
    assert all(storage._store is not first._store for storage in other)


def test_limits_hold_for_objects_and_for_tables(s3):
    """To a port at which nobody listens: three tries each."""
    limits = RequestLimits(retries=2, retry_backoff_ms=1, retry_backoff_max_ms=1)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        nowhere = {"aws_endpoint_url": f"http://127.0.0.1:{nobody.getsockname()[1]}"}
        options = s3.options | nowhere | limits.options()
        with pytest.raises(RetryableError, match="after 2 retries"):
            Storage("s3://warehouse", options).get("a")
        with pytest.raises(RetryableError, match="after 2 retries"):
            TopicArchive.open("s3://warehouse/topic", options=options)


@pytest.mark.parametrize(("name", "value"), [("max_retries", "some"), ("retry_timeout", "a while")])
def test_limits_that_cannot_be_read(name, value):
    with pytest.raises(ConfigurationError, match=f"{value}.*setting {name}"):
        Storage("s3://warehouse", {name: value})


def test_a_bucket_that_is_not_there(s3_options):
    storage = Storage("s3://another-bucket", s3_options)
    with pytest.raises(ConfigurationError, match="cannot write"):
        storage.put("a", b"")


def test_permissions(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    storage = Storage(str(tmp_path))
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigurationError, match="who may write"):
        storage.put("a", b"")


def test_the_local_store_says_permission_denied_only_in_words():
    with pytest.raises(ConfigurationError, match="who may write"), mapped_errors("write", "/a", {}):
        raise GenericError("Unable to open file /a#1: Permission denied (os error 13)")


@pytest.mark.parametrize(
    ("error", "next_step"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "free space on the disk, and run the same command again"),
        (GenericError("Unable to copy data: No space left on device (os error 28)"), "free space on the disk"),
        (OSError(errno.EIO, "Input/output error"), "Next: run the same command again"),
    ],
)
def test_a_full_disk_is_named(error, next_step):
    with pytest.raises(RetryableError, match=next_step), mapped_errors("write", "/a", {}):
        raise error


def test_a_read_only_disk_is_not_retried():
    with pytest.raises(ConfigurationError, match="who may write"), mapped_errors("write", "/a", {}):
        raise OSError(errno.EROFS, "Read-only file system")


def test_a_disk_that_fills_up_leaves_nothing(tmp_path, monkeypatch):
    storage = Storage(str(tmp_path))
    storage.put("head", b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "local").write_bytes(b"new")
    for write in (
        lambda: storage.put("head", b"new"),
        lambda: storage.put_if_absent("commits/1", b"new"),
        lambda: storage.upload(tmp_path / "local", "head"),
    ):
        with pytest.raises(RetryableError, match="free space"):
            write()
    assert storage.get("head") == b"old"
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"head", "local"}


def test_bytes_are_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    """What a power cut must not undo, in order: the new directories, the bytes, the name."""
    storage, synced, real = Storage(str(tmp_path)), [], os.fsync

    def watched(handle: int) -> None:
        real(handle)
        there = sorted(path.name for path in (tmp_path / "a/b").glob("*"))
        what = Path(f"/proc/self/fd/{handle}").readlink().relative_to(tmp_path)
        synced.append((str(what).partition("#")[0], there))

    monkeypatch.setattr(os, "fsync", watched)
    assert storage.put_if_absent("a/b/c", b"1")
    unfinished = synced[2][1]
    assert len(unfinished) == 1
    assert unfinished[0].startswith("c#")
    assert synced == [(".", []), ("a", []), ("a/b/c", unfinished), ("a/b", ["c"])]
    assert not storage.put_if_absent("a/b/c", b"2")
    assert storage.get("a/b/c") == b"1"


class Conflicting(Storage):
    """An object store that refuses creates while another one, which fails in the end, is under way."""

    refusals = 0

    def get_if_present(self, path):
        self.refusals += 1
        return super().get_if_present(path)


def test_a_create_that_was_refused_for_nothing_is_tried_again(monkeypatch):
    storage, put = Conflicting("memory://"), obstore.put

    def refusing(*args: object, **kwargs: object) -> object:
        if storage.refusals < 3:
            raise AlreadyExistsError("409 ConditionalRequestConflict")
        return put(*args, **kwargs)

    monkeypatch.setattr(obstore, "put", refusing)
    assert storage.put_if_absent("commits/1", b"1")
    assert storage.refusals == 3
    assert storage.get("commits/1") == b"1"
    storage.refusals = -100
    with pytest.raises(RetryableError, match="refused it 5 times"):
        storage.put_if_absent("commits/2", b"1")


@pytest.mark.parametrize("error", [AlreadyExistsError("412"), GenericError("operation timed out")])
def test_a_create_whose_answer_was_lost_knows_its_object(monkeypatch, error):
    storage, put = Storage("memory://"), obstore.put

    def losing(*args: object, **kwargs: object) -> object:
        put(*args, **kwargs)
        raise error

    monkeypatch.setattr(obstore, "put", losing)
    assert storage.put_if_absent("commits/1", b"mine")
    assert storage.get("commits/1") == b"mine"
    assert not storage.put_if_absent("commits/1", b"theirs")
    assert storage.get("commits/1") == b"mine"


def test_a_create_that_did_not_arrive_is_made_again(monkeypatch):
    storage, put, calls, fails = Storage("memory://"), obstore.put, [], range(3)

    def failing(*args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) in fails:
            raise GenericError("operation timed out")
        return put(*args, **kwargs)

    monkeypatch.setattr(obstore, "put", failing)
    assert storage.put_if_absent("commits/1", b"1")
    assert len(calls) == 3
    fails = range(100)
    with pytest.raises(RetryableError, match="cannot create: operation timed out"):
        storage.put_if_absent("commits/2", b"1")


def test_a_parent_that_is_an_object_is_an_error_not_a_loss(tmp_path):
    storage = Storage(str(tmp_path))
    storage.put("a", b"1")
    with pytest.raises(RetryableError, match="cannot write"):
        storage.put("a/b", b"2")
    assert storage.get("a") == b"1"


def _create(root: str, options: dict[str, str], barrier: threading.Barrier, won: list[int], who: int) -> None:
    storage = Storage(root, options)
    for n in range(RACES):
        barrier.wait()
        if storage.put_if_absent(f"commits/{n}", str(who).encode()):
            won.append(n)


RACES = 10


@pytest.mark.parametrize("place", ["local", "s3"])
def test_one_of_many_creators_wins(place, tmp_path, request):
    """Each object is created by exactly one of four, and holds what that one wrote."""
    options = request.getfixturevalue("s3_options") if place == "s3" else {}
    root = f"s3://warehouse/{tmp_path.name}" if place == "s3" else str(tmp_path)
    barrier = threading.Barrier(4)
    won: list[list[int]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=_create, args=(root, options, barrier, won[i], i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(n for numbers in won for n in numbers) == list(range(RACES))
    for who, numbers in enumerate(won):
        assert all(Storage(root, options).get(f"commits/{n}") == str(who).encode() for n in numbers)


_WRITE_FOR_EVER = """
import sys
from statelib.storage import Storage
storage = Storage(sys.argv[1])
n = 0
while True:
    storage.put("head", b"%08d" % n * 5000)
    storage.put_if_absent(f"commits/{n}", b"%08d" % n * 5000)
    print(n, flush=True)
    n += 1
"""


def test_kill_leaves_whole_objects_and_nothing_acknowledged_is_lost(tmp_path):
    writer = subprocess.Popen([sys.executable, "-c", _WRITE_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE)
    acknowledged = 0
    for line in writer.stdout:
        acknowledged = int(line)
        if acknowledged == 40:
            break
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    storage = Storage(str(tmp_path))
    contents = {entry.path: storage.get(entry.path) for entry in storage.list()}
    assert all(content == content[:8] * 5000 for content in contents.values())
    assert {f"commits/{n}" for n in range(acknowledged + 1)} <= contents.keys()
    assert int(contents["head"][:8]) >= acknowledged


def test_what_is_written_by_ranges_can_be_read_as_parquet(storage):
    table = pa.table({"a": range(1000)})
    with storage.open_output("t.parquet") as output:
        pq.write_table(table, output)
    with storage.open_input("t.parquet") as source:
        assert pq.read_table(source).equals(table)


def test_what_arrow_writes_can_be_read(storage):
    batch = pa.record_batch({"a": range(1000)})
    with storage.open_output("t.arrow") as output, pa.ipc.new_stream(output, batch.schema) as stream:
        stream.write_batch(batch)
    with storage.open_input("t.arrow") as source:
        assert pa.ipc.open_stream(source).read_next_batch().equals(batch)


def test_an_output_that_is_closed_twice_is_closed_once(storage):
    output = storage.open_output("a")
    output.write(b"1")
    output.close()
    output.close()
    assert isinstance(output, io.RawIOBase)
    assert storage.get("a") == b"1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Object at x not found: No such file\n\nDebug source:\nNotFound { secret }",
            "Object at x not found: No such file",
        ),
        ("Kernel: bad schema\n   0: <unknown>\n   1: <unknown>", "Kernel: bad schema"),
        (
            "Generic S3 error\n \x1b[31m\u21b3\x1b[0m GET http://h/b?X-Sig=abc failed, key hunter22",
            "Generic S3 error GET http://h/b?... failed, key ...",
        ),
    ],
)
def test_reasons_are_one_line_without_secrets(text, reason):
    assert reason_without_secrets(RuntimeError(text), {"aws_access_key_id": "hunter22", "allow_http": "true"}) == reason
