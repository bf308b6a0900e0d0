"""A release is what was built, never changes, and is run only if it is what was put there."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.cli.releases import diff, show
from spark_jobs.errors import LakeError, SettingsError, SourceError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.build_wheel import build_wheel
from spark_jobs.operations.release import SETTINGS, VERSION, Release, release_key, wheel_key
from spark_jobs.operations.releases import (
    RELEASES_KEPT,
    deploy,
    hold_code,
    list_releases,
    publish,
    read_deployment,
    read_release,
    unpack,
)
from tests.support.drivers import ADLOOM
from tests.support.releases import publish_fake
from tests.support.servers import wait_until

_CHECKOUT = Path(__file__).parents[2]
_SETTINGS = '[sessionize]\ngap = "9min"\n'
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("settings") / "adloom.toml"
    file.write_text(_SETTINGS)
    return file


@pytest.fixture(scope="module")
def built(settings: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return build_wheel(_CHECKOUT, tmp_path_factory.mktemp("built"), settings)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(str(tmp_path / "lake"))


def publish_at(lake: Lake, folder: Path, version: str, hour: int) -> Release:
    wheel = folder / f"a-{version}-py3-none-any.whl"
    wheel.write_bytes(version.encode())
    return publish(lake, wheel, version, _NOW + timedelta(hours=hour))


def test_what_was_built_can_be_run_from_the_lake(built: tuple[Path, str], lake: Lake, tmp_path: Path) -> None:
    wheel, version = built
    assert VERSION.fullmatch(version)
    release = publish(lake, wheel, version, _NOW)
    folder = unpack(lake, release, tmp_path / "cache")
    command = [sys.executable, "-P", "-c", "from spark_jobs.cli import main; main()", "--version"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(folder)}, timeout=60
    )
    assert done.stdout == f"adloom {version}\n"
    assert (folder / "spark_jobs" / "spark" / "log4j2.properties").is_file()
    assert (folder / SETTINGS).read_text() == _SETTINGS
    assert unpack(lake, release, tmp_path / "cache") == folder


def test_the_same_files_give_the_same_version_and_others_another(
    built: tuple[Path, str], settings: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    for name in ("spark_jobs", "expectations"):
        shutil.copytree(_CHECKOUT / name, copy / name)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy2(_CHECKOUT / name, copy / name)
    assert build_wheel(copy, tmp_path / "same", settings)[1] == built[1]
    code, _, of_settings = built[1].partition("s")
    assert of_settings == hashlib.sha256(settings.read_bytes()).hexdigest()[:8]
    (copy / "spark_jobs" / "cli.py").write_text("# other\n")
    other = build_wheel(copy, tmp_path / "other")[1]
    assert other != code
    assert "s" not in other


def test_settings_with_a_secret_are_not_built(tmp_path: Path) -> None:
    file = tmp_path / "adloom.toml"
    file.write_text('[kafka]\npassword = "hush"\n')
    with pytest.raises(SettingsError, match=r"kafka\.password.*set ADLOOM_KAFKA__PASSWORD") as refusal:
        build_wheel(_CHECKOUT, tmp_path / "out", file)
    assert "hush" not in str(refusal.value)
    assert not (tmp_path / "out").exists()


def test_what_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a checkout of adloom"):
        build_wheel(tmp_path, tmp_path / "out")


def test_a_release_never_changes(lake: Lake, tmp_path: Path) -> None:
    one, other = tmp_path / "a-1-py3-none-any.whl", tmp_path / "b-1-py3-none-any.whl"
    one.write_bytes(b"one")
    other.write_bytes(b"other")
    release = publish(lake, one, "1.0.0", _NOW)
    assert publish(lake, one, "1.0.0", _NOW + timedelta(days=1)) == release
    with pytest.raises(LakeError, match=r"release 1\.0\.0 of .* has other contents"):
        publish(lake, other, "1.0.0", _NOW)


def test_what_is_not_what_was_released_is_not_run(lake: Lake, tmp_path: Path) -> None:
    wheel = tmp_path / "a-1-py3-none-any.whl"
    wheel.write_bytes(b"one")
    release = publish(lake, wheel, "1.0.0", _NOW)
    lake.files.write(wheel_key(release), b"another")
    with pytest.raises(LakeError, match="is not the published wheel and will not be run"):
        unpack(lake, release, tmp_path / "cache")
    lake.files.delete([wheel_key(release)])
    with pytest.raises(LakeError, match="is missing"):
        unpack(lake, release, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*"))


def test_a_rollback_finds_the_release_before(lake: Lake, tmp_path: Path) -> None:
    for number in (1, 2):
        wheel = tmp_path / f"a-{number}-py3-none-any.whl"
        wheel.write_bytes(b"%d" % number)
        publish(lake, wheel, f"1.0.{number}", _NOW + timedelta(hours=number))
    assert [release.version for release in list_releases(lake)] == ["1.0.2", "1.0.1"]
    assert read_deployment(lake, "attribute") is None
    deploy(lake, "attribute", "1.0.1", _NOW)
    deploy(lake, "attribute", "1.0.2", _NOW)
    again = deploy(lake, "attribute", "1.0.2", _NOW)
    assert (again.version, again.previous) == ("1.0.2", "1.0.1")
    assert read_deployment(lake, "attribute") == again
    assert read_deployment(lake, "deduplicate") is None


def test_the_newest_releases_stay_and_those_that_a_job_runs_or_returns_to(lake: Lake, tmp_path: Path) -> None:
    versions = [f"1.0.{number}" for number in range(RELEASES_KEPT + 4)]
    for number, version in enumerate(versions[:3]):
        publish_at(lake, tmp_path, version, number)
    deploy(lake, "attribute", versions[0], _NOW)
    deploy(lake, "attribute", versions[2], _NOW)
    for number, version in enumerate(versions[3:], start=3):
        publish_at(lake, tmp_path, version, number)
    newest = versions[-RELEASES_KEPT:]
    assert [release.version for release in list_releases(lake)] == [*newest[::-1], versions[2], versions[0]]
    assert set(lake.files.names("_releases")) == {*newest, versions[0], versions[2], "deployed"}
    with pytest.raises(LakeError, match=r"has no release '1\.0\.1'"):
        deploy(lake, "attribute", versions[1], _NOW)


def test_a_damaged_release_keeps_nobody_from_publishing(lake: Lake, tmp_path: Path) -> None:
    publish_at(lake, tmp_path, "1.0.0", 0)
    lake.files.write(release_key("1.0.0"), b"{")
    publish_at(lake, tmp_path, "1.0.1", 1)
    assert read_release(lake, "1.0.1").version == "1.0.1"


def test_code_that_a_driver_runs_stays_unpacked_and_other_old_code_goes(lake: Lake, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    releases = [publish_fake(lake, tmp_path, f"1.0.{number}") for number in range(3)]
    places = []
    for number, release in enumerate(releases):
        places.append(unpack(lake, release, cache))
        os.utime(places[-1], (number, number))
    running = hold_code(places[0])
    for number in range(RELEASES_KEPT):
        unpack(lake, publish_fake(lake, tmp_path, f"2.0.{number}"), cache)
    assert [place.is_dir() for place in places] == [True, False, False]
    assert len(list(cache.iterdir())) == RELEASES_KEPT + 1
    os.close(running)
    unpack(lake, publish_fake(lake, tmp_path, "3.0.0"), cache)
    assert not places[0].is_dir()
    assert len(list(cache.iterdir())) == RELEASES_KEPT


def test_two_releases_are_compared_by_their_settings(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for version, text in (("1.0.0", None), ("1.0.1", '[sessionize]\ngap = "300s"\n'), ("1.0.2", _SETTINGS)):
        publish_fake(lake, tmp_path, version, text)
    location = str(lake.path)

    def difference(before: str, now: str) -> list[str]:
        diff(before, now, location, None)
        return capsys.readouterr().out.split()

    assert difference("1.0.1", "1.0.2")[-3:] == ["sessionize.gap", "5min", "9min"]
    assert difference("1.0.2", "1.0.0")[-3:] == ["sessionize.gap", "9min", "5min"]
    assert difference("1.0.0", "1.0.1") == ["the", "settings", "are", "the", "same"]
    show("1.0.2", location, None)
    assert capsys.readouterr().out.split()[-3:] == ["sessionize.gap", "5min", "9min"]
    show("1.0.0", location, None)
    assert "It holds no settings" in capsys.readouterr().out


@pytest.mark.parametrize("version", ["../../etc", "deployed", "1.0.0/../x", "", "1.0.0; rm -rf /", "9.9.9", "1.0.0\n"])
def test_a_version_leads_nowhere_else(lake: Lake, version: str) -> None:
    lake.files.write("etc/release.json", b"{}")
    lake.files.write("_releases/deployed/attribute.json", b"{}")
    with pytest.raises(LakeError, match="has no release"):
        read_release(lake, version)


def test_a_damaged_release_is_named(lake: Lake) -> None:
    lake.files.write(release_key("1.0.0"), b'{"version": "1.0.0"}')
    with pytest.raises(LakeError, match="is damaged"):
        read_release(lake, "1.0.0")


def test_a_driver_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    lake, log = tmp_path / "lake", tmp_path / "driver.log"
    lake.mkdir()
    source = tmp_path / "source"
    source.mkdir()
    (source / "events.jsonl").write_text("\n")
    # A supervisor that does nothing but start it and tell its pid.
    start = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen(sys.argv[2:], stderr=open(sys.argv[1], 'w')); print(child.pid, flush=True); "
        "time.sleep(120)"
    )
    command = [*ADLOOM, "driver", "deduplicate", "--lake", str(lake), "--source", str(source)]
    supervisor = subprocess.Popen([sys.executable, "-c", start, str(log), *command], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout
    pid = int(supervisor.stdout.readline())
    try:
        wait_until(lambda: "starting Spark" in log.read_text(), 90, "Spark was not started")
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()
        wait_until(lambda: not _is_alive(pid), 90, "the driver outlives its supervisor")
    finally:
        supervisor.kill()
        if _is_alive(pid):
            os.kill(pid, signal.SIGKILL)
        supervisor.stdout.close()
    assert f"driver of deduplicate: process {pid}, release" in log.read_text()


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
