"""Where there are no jars yet, as after the installation of a wheel, the first start of Spark fetches them."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.errors import EnvironmentMissingError
from spark_jobs.spark.jars import install as installing
from spark_jobs.spark.jars import ready
from spark_jobs.spark.jars.fetch import FetchError
from spark_jobs.spark.jars.install import folder_in_cache, install
from spark_jobs.spark.jars.lock import Jar, digest
from spark_jobs.spark.jars.ready import jars_folder, mending, ready_jars


def _failing(error: Exception) -> Callable[[Path], None]:
    def fail(_: Path) -> None:
        raise error

    return fail


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where set-up would put the jars of this Python, which has none; nor has the user's cache."""
    monkeypatch.setattr(ready, "_GIVEN", tmp_path / "share")
    monkeypatch.setattr(installing, "CACHE", tmp_path / "cache")
    return tmp_path / "share"


def test_jars_of_set_up_are_used_and_nothing_is_fetched(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jars_folder() == folder_in_cache()
    assert mending().startswith("remove ")
    given.mkdir()
    monkeypatch.setattr(ready, "install", _failing(AssertionError()))
    ready_jars()
    assert jars_folder() == given
    assert mending() == "run `make setup`"


def test_jars_that_are_in_the_cache_are_not_fetched_again(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not given.exists()
    fetched: list[Path] = []

    def fetch(_: Path, target: Path) -> None:
        target.mkdir()
        (target / "one.jar").touch()
        fetched.append(target)

    (given.parent / "one.jar").touch()
    locked = Jar("org.acme", "one", "", "", digest(given.parent / "one.jar"))
    monkeypatch.setattr(installing, "read_lock", lambda _: [locked])
    monkeypatch.setattr(installing, "fetch", fetch)
    monkeypatch.setattr(installing, "compile_jar", lambda _, folder: (folder / "adloom.jar").touch())
    monkeypatch.setattr(ready, "check_java", lambda: None)
    ready_jars()
    assert {jar.name for jar in jars_folder().iterdir()} == {"one.jar", "adloom.jar"}
    ready_jars()
    install(jars_folder())
    assert len(fetched) == 1


@pytest.mark.usefixtures("given")
def test_without_java_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match=r"no Java found .*; install Java 17 or 21"):
        ready_jars()
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("given")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(FetchError("no repository answers"), "^no repository answers$", id="fetch"),
        pytest.param(OSError(errno.EROFS, "Read-only file system"), "Read-only .* set ADLOOM_CACHE to", id="cache"),
    ],
)
def test_jars_that_cannot_be_had_are_a_prerequisite_that_is_missing(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "check_java", lambda: None)
    monkeypatch.setattr(ready, "install", _failing(error))
    with pytest.raises(EnvironmentMissingError, match=told):
        ready_jars()
