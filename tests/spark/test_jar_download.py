"""Jars are fetched from a Maven repository by the Ivy that PySpark ships, and checked by their SHA-256."""

import hashlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from spark_jobs.spark.jars.fetch import FetchError, fetch

_JARS = {"org.acme:one:1.0": "org/acme/one/1.0/one-1.0.jar", "org.acme:two:2.0:x86": "org/acme/two/2.0/two-2.0-x86.jar"}


class Repository:
    """A Maven repository on loopback with two jars, and a folder with their lock."""

    def __init__(self, folder: Path) -> None:
        self.lock, self.files, self.asked = folder / "lock", folder / "files", list[str]()
        self.lock.mkdir()
        (self.lock / "pom.xml").write_text("<project/>")
        lines = [f"pom.xml {hashlib.sha256(b'<project/>').hexdigest()}\n"]
        for coordinates, path in _JARS.items():
            self.put(path, coordinates.encode())
            lines.append(f"{coordinates} {hashlib.sha256(coordinates.encode()).hexdigest()}\n")
        (self.lock / "jars.lock").write_text("".join(lines))

    def put(self, path: str, content: bytes) -> None:
        (self.files / path).parent.mkdir(parents=True, exist_ok=True)
        (self.files / path).write_bytes(content)

    def serve(self) -> ThreadingHTTPServer:
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path.rpartition("/")[2])
                super().do_GET()

            def log_message(self, *_: object) -> None:
                """The test shows what was asked for."""

        return ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(self.files)))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    own = Repository(tmp_path)
    with own.serve() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("ADLOOM_MAVEN_URL", f"http://somebody:letter@127.0.0.1:{server.server_address[1]}")
        yield own
        server.shutdown()


def test_the_jars_of_the_lock_are_fetched_once(repository: Repository, tmp_path: Path) -> None:
    target = tmp_path / "cache" / "jars"
    fetch(repository.lock, target)
    assert {path.name: path.read_text() for path in target.iterdir()} == {
        "one-1.0.jar": "org.acme:one:1.0",
        "two-2.0-x86.jar": "org.acme:two:2.0:x86",
    }
    assert sorted(repository.asked) == ["one-1.0.jar", "two-2.0-x86.jar"]
    fetch(repository.lock, target)
    assert len(repository.asked) == 2
    (target / "one-1.0.jar").write_text("damaged on this disk")
    fetch(repository.lock, target)
    assert (target / "one-1.0.jar").read_text() == "org.acme:one:1.0"


def test_a_jar_with_another_sha_256_is_refused_and_none_is_installed(repository: Repository, tmp_path: Path) -> None:
    repository.put(_JARS["org.acme:two:2.0:x86"], b"somebody else's code")
    target = tmp_path / "jars"
    with pytest.raises(FetchError, match=r"two-2.0-x86.jar from http://127.0.0.1:\d+ does not have the SHA-256"):
        fetch(repository.lock, target)
    assert not target.exists()
    repository.put(_JARS["org.acme:two:2.0:x86"], b"org.acme:two:2.0:x86")
    fetch(repository.lock, target)
    assert target.is_dir(), "the damaged download is not used again"


def test_a_download_that_failed_continues_with_the_jars_it_lacks(repository: Repository, tmp_path: Path) -> None:
    missing = repository.files / _JARS["org.acme:two:2.0:x86"]
    content = missing.read_bytes()
    missing.unlink()
    with pytest.raises(FetchError, match=r"from http://127.0.0.1:\d+: .*two.*ADLOOM_MAVEN_URL"):
        fetch(repository.lock, tmp_path / "jars")
    missing.write_bytes(content)
    repository.asked.clear()
    fetch(repository.lock, tmp_path / "jars")
    assert set(repository.asked) == {"two-2.0-x86.jar"}
