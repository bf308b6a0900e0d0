"""Java runs the jars in the cache as this user: nobody else may have put them there or changed them."""

import os
from pathlib import Path

import pytest

from spark_jobs.spark.jars import install as installing
from spark_jobs.spark.jars.compile import ADLOOM_JAR
from spark_jobs.spark.jars.install import InsecureError, install, is_sound
from spark_jobs.spark.jars.lock import Jar, digest

_NAME = "tool-1.0.jar"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a sound folder of jars: one that is locked, and adloom's own."""
    cache = tmp_path / "cache"

    def fetched(_: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _NAME).write_bytes(b"as locked")

    (tmp_path / _NAME).write_bytes(b"as locked")
    jar = Jar("org.acme", "tool", "1.0", "", digest(tmp_path / _NAME))
    monkeypatch.setattr(installing, "CACHE", cache)
    monkeypatch.setattr(installing, "read_lock", lambda _: [jar])
    monkeypatch.setattr(installing, "fetch", fetched)
    monkeypatch.setattr(installing, "compile_jar", lambda _, folder: (folder / ADLOOM_JAR).write_bytes(b"compiled"))
    umask = os.umask(0o002)  # of users with a group of their own, as Debian has them
    install(cache / "spark")
    os.umask(umask)
    assert is_sound(cache / "spark")
    return cache / "spark"


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda folder: (folder / _NAME).write_bytes(b"as locked, and more"), id="a-jar-changed"),
        pytest.param(lambda folder: (folder / "evil-1.0.jar").write_bytes(b"x"), id="a-jar-added"),
        pytest.param(lambda folder: (folder / _NAME).unlink(), id="a-jar-taken-away"),
        pytest.param(lambda folder: (folder / ADLOOM_JAR).unlink(), id="own-jar-taken-away"),
        pytest.param(lambda folder: folder.chmod(0o777), id="open-to-all"),
        pytest.param(lambda folder: (folder / ADLOOM_JAR).chmod(0o666), id="own-jar-open-to-all"),
        pytest.param(lambda folder: folder.parent.chmod(0o777), id="the-cache-open-to-all"),
    ],
)
def test_jars_that_others_could_have_changed_are_replaced(target: Path, harm: object) -> None:
    assert callable(harm)
    harm(target)
    assert not is_sound(target)
    install(target)
    assert is_sound(target)
    assert {file.name: file.read_bytes() for file in target.iterdir()} == {_NAME: b"as locked", ADLOOM_JAR: b"compiled"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("whose", ["folder", "jar", "cache"])
def test_jars_of_another_user_are_not_run(target: Path, whose: str) -> None:
    place = {"folder": target, "jar": target / ADLOOM_JAR, "cache": target.parent}[whose]
    os.chown(place, 12345, 12345)
    assert not is_sound(target)
    if whose == "cache":
        with pytest.raises(InsecureError, match=r"belongs to user 12345.*set ADLOOM_CACHE to a folder of your own"):
            install(target)
    else:
        install(target)
        assert is_sound(target)


def test_a_link_to_jars_elsewhere_is_not_followed(target: Path) -> None:
    moved = target.rename(target.with_name("elsewhere"))
    target.symlink_to(moved)
    assert not is_sound(target)
