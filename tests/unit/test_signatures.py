"""Only releases that the holder of the private key has signed are run where a public key is set."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

import pytest

from ad_dags.drivers.compatibility import code_of
from spark_jobs.config.settings import Settings
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.records import write_record
from spark_jobs.operations.doctor import CHECKS, Finding, Subject, findings_of
from spark_jobs.operations.release import Release, release_key, wheel_key
from spark_jobs.operations.releases import (
    deploy,
    publish,
    read_release,
    settings_of_job,
    sign_release,
    unpack,
)
from spark_jobs.operations.signatures import create_key
from tests.support.drivers import ADLOOM

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return open_lake(str(tmp_path / "lake"))


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A pair of keys: releases are signed with one and checked with the other."""
    private = tmp_path / "release.pem"
    public = create_key(private)
    monkeypatch.setenv("ADLOOM_RELEASE_KEY", str(private))
    monkeypatch.setenv("ADLOOM_RELEASE_PUBLIC_KEY", public)
    return private, public


def _wheel(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "adloom-0.1.0-py3-none-any.whl"
    with ZipFile(file, "w") as wheel:
        wheel.writestr("spark_jobs/cli/__init__.py", f"def main(): print({text!r})\n")
    return file


def _planted(lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> Release:
    """A release of whoever may write ``_releases`` and has no key."""
    with monkeypatch.context() as without:
        without.delenv("ADLOOM_RELEASE_KEY")
        return publish(lake, _wheel(folder, "code of an attacker"), version, _NOW)


@pytest.mark.usefixtures("keys")
def test_a_release_that_was_built_with_the_key_runs(lake: Lake, tmp_path: Path) -> None:
    release = publish(lake, _wheel(tmp_path / "built", "ours"), "0.1.0+1", _NOW)
    assert read_release(lake, "0.1.0+1") == release
    assert (unpack(lake, release) / "spark_jobs").is_dir()


@pytest.mark.usefixtures("keys")
def test_a_release_that_was_planted_is_run_by_nobody(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _planted(lake, tmp_path / "evil", monkeypatch, "0.1.0+2")
    deploy(lake, "attribute", "0.1.0+2", _NOW)
    with pytest.raises(LakeError, match=r"release 0\.1\.0\+2 is not signed, and will not be run"):
        unpack(lake, read_release(lake, "0.1.0+2"))
    with pytest.raises(LakeError, match="is not signed"):
        settings_of_job(lake, "attribute")
    done = subprocess.run([*ADLOOM, "driver", "attribute", "--lake", lake.shown()], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"is not signed" in done.stderr
    assert b"code of an attacker" not in done.stdout + done.stderr
    assert not (tmp_path / "cache" / "adloom" / "releases").exists()


def test_the_tasks_of_airflow_run_no_planted_release_either(
    lake: Lake, keys: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ad_dags.connection.lake_connection import connect
    from ad_dags.connection.lakes import LakeRef

    assert keys
    _planted(lake, tmp_path / "evil", monkeypatch, "0.1.0+2")
    given = {"ADLOOM_SUPERVISOR_ADDRESS": "127.0.0.1:1", "ADLOOM_SUPERVISOR_PASSWORD": "x"}
    connection = connect(LakeRef(), {"ADLOOM_LAKE": lake.shown(), **given})
    with pytest.raises(LakeError, match="is not signed"):
        code_of(connection, "0.1.0+2")


def test_neither_another_key_nor_another_version_nor_other_bytes_pass(
    lake: Lake, keys: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = publish(lake, _wheel(tmp_path / "built", "ours"), "0.1.0+1", _NOW)
    create_key(tmp_path / "other.pem")
    monkeypatch.setenv("ADLOOM_RELEASE_KEY", str(tmp_path / "other.pem"))
    theirs = publish(lake, _wheel(tmp_path / "evil", "theirs"), "0.1.0+3", _NOW)
    with pytest.raises(LakeError, match="has a signature of another key"):
        unpack(lake, theirs)
    evil = theirs.model_copy(update={"signature": ours.signature})
    with pytest.raises(LakeError, match="has a signature of another key"):
        unpack(lake, evil)
    for forged in ("!", "AAAA", ours.signature[:-4]):
        with pytest.raises(LakeError, match="has a signature of another key"):
            unpack(lake, ours.model_copy(update={"signature": forged}))
    newer = ours.model_copy(update={"version": "0.1.0+9"})
    with pytest.raises(LakeError, match="has a signature of another key"):
        unpack(lake, newer)
    write_record(lake, release_key("0.1.0+9"), ours)
    with pytest.raises(LakeError, match=r"describes release 0\.1\.0\+1: it was put in the place of 0\.1\.0\+9"):
        read_release(lake, "0.1.0+9")
    assert keys[1]


def test_while_a_key_is_replaced_both_are_trusted_and_a_file_may_hold_them(
    lake: Lake, keys: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = publish(lake, _wheel(tmp_path / "old", "old"), "0.1.0+1", _NOW)
    new_key = create_key(tmp_path / "new.pem")
    monkeypatch.setenv("ADLOOM_RELEASE_KEY", str(tmp_path / "new.pem"))
    new = publish(lake, _wheel(tmp_path / "new", "new"), "0.1.0+2", _NOW)
    (tmp_path / "public").write_text(f"{keys[1]},{new_key}\n")
    monkeypatch.delenv("ADLOOM_RELEASE_PUBLIC_KEY")
    monkeypatch.setenv("ADLOOM_RELEASE_PUBLIC_KEY_FILE", str(tmp_path / "public"))
    assert unpack(lake, old).is_dir()
    assert unpack(lake, new).is_dir()
    (tmp_path / "public").write_text(f"{new_key}\n")
    with pytest.raises(LakeError, match="another key"):
        unpack(lake, old)


def test_a_lake_of_before_goes_on_and_its_releases_can_be_signed(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = publish(lake, _wheel(tmp_path / "built", "ours"), "0.1.0+1", _NOW)
    assert unpack(lake, release).is_dir(), "without a public key nothing is asked"
    damaged = publish(lake, _wheel(tmp_path / "damaged", "damaged"), "0.1.0+0", _NOW)
    lake.files.delete([wheel_key(damaged)])
    monkeypatch.setenv("ADLOOM_RELEASE_PUBLIC_KEY", create_key(tmp_path / "release.pem"))
    with pytest.raises(LakeError, match=r"with `adloom releases sign 0\.1\.0\+1`"):
        unpack(lake, release)
    with pytest.raises(SettingsError, match="ADLOOM_RELEASE_KEY is not set"):
        sign_release(lake, "0.1.0+1")
    monkeypatch.setenv("ADLOOM_RELEASE_KEY", str(tmp_path / "release.pem"))
    done = subprocess.run(
        [*ADLOOM, "releases", "sign", "--all", "--lake", lake.shown()], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert sorted(line.partition(" is ")[0].partition(str(lake.path))[0] for line in lines) == [
        "0.1.0+0: not signed: ",
        "0.1.0+1: signed",
    ]
    assert unpack(lake, read_release(lake, "0.1.0+1")).is_dir()
    assert read_release(lake, "0.1.0+1").sha256 == release.sha256


@pytest.mark.usefixtures("keys")
def test_a_release_whose_wheel_was_exchanged_is_not_signed(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = _planted(lake, tmp_path / "before", monkeypatch, "0.1.0+1")
    lake.files.write(f"_releases/{release.version}/{release.wheel}", b"other bytes")
    with pytest.raises(LakeError, match="it is not the published wheel"):
        sign_release(lake, "0.1.0+1")


def test_the_private_key_is_its_owners_and_is_never_replaced_or_printed(tmp_path: Path) -> None:
    file = tmp_path / "release.pem"
    command = [*ADLOOM, "releases", "key", str(file)]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert file.stat().st_mode & 0o077 == 0
    assert file.read_text().splitlines()[1] not in made.stdout + made.stderr
    before = file.read_bytes()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, file.read_bytes()) == (1, before)
    assert "a key is never replaced" in " ".join(again.stderr.split())


@pytest.mark.parametrize("text", ["x", "AAAA", "-----BEGIN"])
def test_a_public_key_that_is_none_is_refused(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    release = publish(lake, _wheel(tmp_path / "built", "ours"), "0.1.0+1", _NOW)
    monkeypatch.setenv("ADLOOM_RELEASE_PUBLIC_KEY", text)
    with pytest.raises(SettingsError, match="is no public key; it is what `adloom releases key` prints"):
        unpack(lake, release)


def _seen_by_doctor(lake: Lake) -> list[Finding]:
    (jobs,) = [check for check in CHECKS if check.name == "jobs"]
    return [one for one in findings_of(jobs, Subject(lake, Settings(), _NOW)) if "release" in one.text]


@pytest.mark.usefixtures("keys")
def test_the_doctor_says_which_release_a_job_starts_with_and_whether_it_may(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(lake, _wheel(tmp_path / "signed", "signed"), "0.1.0", _NOW)
    monkeypatch.delenv("ADLOOM_RELEASE_KEY")
    publish(lake, _wheel(tmp_path / "unsigned", "unsigned"), "0.2.0", _NOW)
    deploy(lake, "deduplicate", "0.1.0", _NOW)
    deploy(lake, "attribute", "0.2.0", _NOW)
    refused, signed = sorted(_seen_by_doctor(lake), key=lambda one: one.severity, reverse=True)
    assert signed.text == "job deduplicate starts with release 0.1.0, which is signed"
    assert refused.severity == "wrong"
    assert "release 0.2.0 is not signed, and will not be run" in refused.text
    monkeypatch.delenv("ADLOOM_RELEASE_PUBLIC_KEY")
    _, unsigned = _seen_by_doctor(lake)
    assert unsigned.text.endswith(
        "0.2.0, which is not signed, and ADLOOM_RELEASE_PUBLIC_KEY is not set here, so nothing checks it"
    )
