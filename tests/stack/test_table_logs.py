"""The listing of a table's log in an object store: what Delta's own gives, without the beginning of the log."""

import signal
import time
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SESSIONS
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.objects import Objects
from spark_jobs.spark.conf import spark_conf
from spark_jobs.spark.s3a import s3a_conf
from tests.stack.minio import Minio

pytestmark = pytest.mark.stack

_LOG = f"{SESSIONS.path}/_delta_log"
_COMMITS = 1_200
"""With their checksums, more than two pages of a listing."""
_AWAY_S = 5
_OWN, _DELTA = "adloom.TailLogStore", "io.delta.storage.S3SingleDriverLogStore"


class _Listing:
    """Lists logs as Delta does, in Java."""

    def __init__(self, spark: SparkSession, minio: Minio) -> None:
        jvm: Any = spark._jvm
        gateway: Any = spark.sparkContext._gateway
        self._jvm, self._gateway = jvm, gateway
        hadoop = self._jvm.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
        for name, value in s3a_conf(S3Settings(endpoint=minio.endpoint)).items():
            hadoop.set(name.removeprefix("spark.hadoop."), value)
        # The keys of the environment are those of this process, which is older than MinIO.
        hadoop.set("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider")
        hadoop.set("fs.s3a.access.key", minio.user)
        hadoop.set("fs.s3a.secret.key", minio.password)
        self._conf = hadoop

    def names(self, store: str, lake: Lake, first: str) -> list[str]:
        path = self._jvm.org.apache.hadoop.fs.Path(f"{lake.uri(_LOG)}/{first}")
        given = self._gateway.new_array(self._jvm.java.lang.Object, 1)
        given[0] = self._conf
        found = self._jvm.java.lang.Class.forName(store).getConstructors()[0].newInstance(given)
        listed, names = found.listFrom(path, self._conf), []
        while listed.hasNext():
            status = listed.next()
            names.append(f"{status.getPath()} {status.getLen()} {status.isDirectory()}")
        return names


@pytest.fixture
def listing(spark: SparkSession, minio: Minio) -> _Listing:
    return _Listing(spark, minio)


def _file(version: int, suffix: str = "json") -> str:
    return f"{version:020}.{suffix}"


def test_it_gives_what_deltas_own_gives_from_any_name_on(lake: Lake, listing: _Listing) -> None:
    for version in range(_COMMITS):
        lake.files.write(commit_key(SESSIONS, version), b"{}" * (version % 7))
        lake.files.write(f"{_LOG}/{_file(version, 'crc')}", b"{}")
    lake.files.write(f"{_LOG}/{_file(1000, 'checkpoint.parquet')}", b"PAR1")
    lake.files.write(f"{_LOG}/_last_checkpoint", b"{}")
    for first, least in (
        (_file(0), 2 * _COMMITS),
        (_file(1, "crc"), 2 * _COMMITS - 2),
        (_file(1000, "checkpoint"), 401),
        (_file(_COMMITS - 1), 2),
        (_file(_COMMITS), 1),
    ):
        own = listing.names(_OWN, lake, first)
        assert own == listing.names(_DELTA, lake, first), first
        assert len(own) >= least


def test_files_in_folders_of_the_log_are_not_taken_for_commits(lake: Lake, listing: _Listing) -> None:
    lake.files.write(commit_key(SESSIONS, 0), b"{}")
    lake.files.write(f"{_LOG}/_staged_commits/{_file(1)}", b"{}")
    assert [line.split()[0] for line in listing.names(_OWN, lake, _file(0))] == [lake.uri(commit_key(SESSIONS, 0))]


def test_no_log_is_told_from_an_empty_end_of_one(lake: Lake, listing: _Listing) -> None:
    with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
        listing.names(_OWN, lake, _file(0))
    lake.files.write(commit_key(SESSIONS, 0), b"{}")
    assert listing.names(_OWN, lake, _file(1)) == []


def test_a_store_that_is_away_for_some_seconds_is_waited_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Minio(tmp_path / "minio")
    server.start()
    try:
        for name, value in server.settings().items():
            monkeypatch.setenv(name, value)
        # Java keeps its connections by bucket: this one is of this server alone.
        lake = open_lake("s3a://away/lake", S3Settings(endpoint=server.endpoint))
        assert isinstance(lake.files, Objects)
        lake.files.client.create_bucket(Bucket="away")
        lake.files.write(commit_key(SESSIONS, 0), b"{}")
        listing = _Listing(spark, server)
        expected = listing.names(_OWN, lake, _file(0))
        server.stop(signal.SIGKILL)
        back = Timer(_AWAY_S, server.start)
        back.start()
        began = time.monotonic()
        assert listing.names(_OWN, lake, _file(0)) == expected
        assert time.monotonic() - began >= _AWAY_S
        back.join()
    finally:
        server.stop()


def test_lakes_in_an_object_store_use_it() -> None:
    assert spark_conf(Settings(), is_local=False)["spark.delta.logStore.s3a.impl"] == _OWN
    assert "spark.delta.logStore.s3a.impl" not in spark_conf(Settings(), is_local=True)
