"""Java trusts the authority of s3.ca_file by a file that nobody else can have put there."""

import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
import trustme

from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import SettingsError
from spark_jobs.spark.conf import spark_conf
from spark_jobs.spark.s3a import trust_options
from spark_jobs.spark.scratch import make_scratch


@pytest.fixture
def settings(tmp_path: Path) -> S3Settings:
    pem = tmp_path / "authorities.pem"
    pem.write_bytes(trustme.CA().cert_pem.bytes() + trustme.CA().cert_pem.bytes())
    return S3Settings(ca_file=pem)


def test_the_trust_store_lies_in_the_folder_of_the_process_and_holds_each_authority(
    settings: S3Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "tmp"
    machine.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(machine))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    scratch = make_scratch()
    conf = spark_conf(Settings(s3=settings), is_local=False, scratch=scratch)
    words = dict(word.split("=", 1) for word in conf["spark.driver.extraJavaOptions"].split() if "=" in word)
    store = Path(words["-Djavax.net.ssl.trustStore"])
    assert store.parent == scratch
    assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    assert scratch.stat().st_uid == os.getuid()
    assert [path.parent for path in machine.rglob("*.p12")] == [scratch], "none at a name that can be guessed"
    listed = subprocess.run(
        ["keytool", "-list", "-keystore", str(store), "-storepass", words["-Djavax.net.ssl.trustStorePassword"]],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert all(f"adloom-{number}" in listed.stdout for number in (0, 1))


def test_without_a_folder_of_its_own_nothing_is_written(settings: S3Settings) -> None:
    assert "trustStore" not in spark_conf(Settings(s3=settings), is_local=False)["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_what_is_no_certificate_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "ca.pem").write_text(text)
    with pytest.raises(SettingsError, match=r"s3\.ca_file"):
        trust_options(S3Settings(ca_file=tmp_path / "ca.pem"), tmp_path)
