"""What an application consists of: its jar, its libraries, and the test utilities of its version of Kafka Streams."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hindstream.porting.jars import jars_of
from hindstream.porting.maven import Artifact, Repository
from statelib.errors.kinds import ConfigurationError

UTILS = Artifact("org.apache.kafka", "kafka-streams-test-utils", "3.9.1")
VERSION = ("kafka/kafka-streams-version.properties", "commitId=1\nversion=3.9.1\n")


def jar(file: Path, *entries: tuple[str, str]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return file


@pytest.fixture
def repository(tmp_path) -> Repository:
    """One of nowhere; Maven's own folder has the test utilities."""
    jar(tmp_path / "m2" / UTILS.path)
    return Repository("http://127.0.0.1:9", tmp_path / "m2", tmp_path / "kept")


def test_a_jar_with_everything(tmp_path, repository) -> None:
    app = jar(tmp_path / "app.jar", VERSION)
    found = jars_of(app, None, None, repository, tmp_path / "scratch")
    assert found.kafka_version == "3.9.1"
    assert found.class_path == (app, tmp_path / "m2" / UTILS.path)


def test_a_folder_of_classes_with_libraries_and_given_test_utilities(tmp_path, repository) -> None:
    libraries = [jar(tmp_path / "lib" / name, *entries) for name, entries in (("a.jar", ()), ("b.jar", (VERSION,)))]
    (tmp_path / "classes").mkdir()
    utils = jar(tmp_path / "utils.jar")
    found = jars_of(tmp_path / "classes", f"{tmp_path}/lib/*", utils, repository, tmp_path / "scratch")
    assert found.class_path == (tmp_path / "classes", *libraries, utils)


def test_test_utilities_on_the_class_path_are_not_fetched(tmp_path, repository) -> None:
    app = jar(tmp_path / "app.jar", VERSION, ("org/apache/kafka/streams/TopologyTestDriver.class", ""))
    (tmp_path / "m2" / UTILS.path).unlink()
    assert jars_of(app, None, None, repository, tmp_path / "scratch").class_path == (app,)


def test_what_is_packed_in_a_jar_of_spring_boot_is_unpacked(tmp_path, repository) -> None:
    inner = jar(tmp_path / "kafka-streams.jar", VERSION).read_bytes()
    app = tmp_path / "boot.jar"
    with zipfile.ZipFile(app, "w") as archive:
        archive.writestr("BOOT-INF/classes/com/acme/Flights.class", "class")
        archive.writestr("BOOT-INF/lib/kafka-streams.jar", inner)
        archive.writestr("org/springframework/boot/loader/Launcher.class", "")
    found = jars_of(app, None, None, repository, tmp_path / "scratch")
    assert found.kafka_version == "3.9.1"
    classes, streams, _ = found.class_path
    assert (classes / "com/acme/Flights.class").read_text() == "class"
    assert streams.read_bytes() == inner


def test_what_is_missing_is_named(tmp_path, repository) -> None:
    def refused(*given) -> str:
        with pytest.raises(ConfigurationError) as error:
            jars_of(*given, repository=repository, scratch=tmp_path / "scratch")
        return error.value.message

    thin = jar(tmp_path / "thin.jar")
    assert refused(tmp_path / "no.jar", None, None).startswith("there is no such file")
    assert "neither the jar nor the class path has Kafka Streams" in refused(thin, None, None)
    assert "--class-path" in refused(thin, str(tmp_path / "lib" / "*"), None)
    (tmp_path / "text.jar").write_text("text")
    assert "this is no jar" in refused(tmp_path / "text.jar", None, None)
    app = jar(tmp_path / "app.jar", VERSION)
    assert "setting --test-utils" in refused(app, None, tmp_path / "utils.jar")
    (tmp_path / "m2" / UTILS.path).unlink()
    message = refused(app, None, None)
    assert "kafka-streams-test-utils 3.9.1 is not on this machine and cannot be fetched" in message
    assert "--test-utils FILE.jar" in message


@pytest.fixture
def server(tmp_path):
    """Serves a repository on loopback."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_) -> None:
            """Says nothing."""

    root = tmp_path / "served"
    root.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield root, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_what_is_fetched_is_checked_and_kept(tmp_path, server) -> None:
    root, url = server
    served = jar(root / UTILS.path, ("a", "b"))
    checksum = served.with_name(f"{served.name}.sha1")
    repository = Repository(url, tmp_path / "m2", tmp_path / "kept")
    checksum.write_text("0" * 40)
    with pytest.raises(ConfigurationError, match="its checksum is not the repository's"):
        repository.jar(UTILS)
    checksum.write_text(hashlib.sha1(served.read_bytes()).hexdigest() + "\n")
    fetched = repository.jar(UTILS)
    assert fetched.read_bytes() == served.read_bytes()
    served.unlink()
    assert repository.jar(UTILS) == fetched
    with pytest.raises(ConfigurationError, match="404"):
        repository.jar(Artifact("org.apache.kafka", "kafka-streams-test-utils", "0.1"))
