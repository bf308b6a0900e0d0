"""What the lifecycle rules of `adloom init` remove from a real MinIO, by the age of versions and delete markers."""

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.store.bucket import KEPT_DAYS
from spark_jobs.lake.store.objects import Objects
from tests.stack.minio import Minio
from tests.support.drivers import ADLOOM
from tests.support.servers import wait_until

pytestmark = pytest.mark.stack

_LAKE = "s3a://expiring/lake"
_OLD, _RECENT = timedelta(days=KEPT_DAYS + 2), timedelta(days=KEPT_DAYS - 2)
_SCAN_S = 120


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Minio]:
    """A MinIO that looks for what has expired every second or so, and not when it finds the time.

    An upload has five seconds there, and not a day.
    """
    often = {"MINIO_SCANNER_SPEED": "fastest", "MINIO_API_STALE_UPLOADS_CLEANUP_INTERVAL": "1s"}
    minio = Minio(tmp_path / "minio", environment={**often, "MINIO_API_STALE_UPLOADS_EXPIRY": "5s"})
    minio.start()
    for name, value in minio.settings().items():
        monkeypatch.setenv(name, value)
    yield minio
    minio.stop()


class _Aged:
    """Writes and deletes as if it had been some time ago, as MinIO's replication does."""

    def __init__(self, objects: Objects) -> None:
        self._objects, self._ago = objects, timedelta()
        for call in ("PutObject", "DeleteObject"):
            objects.client.meta.events.register(f"before-call.s3.{call}", self._set_time)

    def write(self, key: str, ago: timedelta) -> None:
        self._ago = ago
        self._objects.client.put_object(Bucket=self._objects.bucket, Key=self._objects.name(key), Body=b"x")

    def delete(self, key: str, ago: timedelta) -> None:
        self._ago = ago
        self._objects.client.delete_object(Bucket=self._objects.bucket, Key=self._objects.name(key))

    def _set_time(self, params: dict[str, Any], **_: Any) -> None:
        at = datetime.now(UTC) - self._ago
        params["headers"]["X-Minio-Source-Mtime"] = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _found(objects: Objects) -> set[tuple[str, str]]:
    """The key of each version and delete marker in the bucket, and which of the two it is."""
    listed = objects.client.list_object_versions(Bucket=objects.bucket)
    prefix = f"{objects.prefix}/"
    kinds = (("Versions", "version"), ("DeleteMarkers", "marker"))
    return {(one["Key"].removeprefix(prefix), kind) for name, kind in kinds for one in listed.get(name, ())}


def test_what_was_deleted_leaves_nothing_behind_when_its_time_is_over(server: Minio) -> None:
    subprocess.run([*ADLOOM, "init", "--lake", _LAKE], check=True, capture_output=True, timeout=120, env=os.environ)
    objects = Objects(_LAKE, S3Settings(endpoint=server.endpoint))
    aged = _Aged(objects)
    aged.write("silver/current", _OLD)
    aged.write("silver/deleted-long-ago", 2 * _OLD)
    aged.delete("silver/deleted-long-ago", _OLD)
    aged.write("silver/deleted-lately", 2 * _OLD)
    aged.delete("silver/deleted-lately", _RECENT)
    recent = {("silver/current", "version"), ("silver/deleted-lately", "version"), ("silver/deleted-lately", "marker")}
    assert _found(objects) > recent, "the store took the times for now"
    wait_until(lambda: _found(objects) == recent, _SCAN_S, f"what has expired is still there: {_found(objects)}")


def test_minio_needs_no_rule_for_uploads_that_nobody_finishes(server: Minio) -> None:
    subprocess.run([*ADLOOM, "init", "--lake", _LAKE], check=True, capture_output=True, timeout=120, env=os.environ)
    objects = Objects(_LAKE, S3Settings(endpoint=server.endpoint))
    place = {"Bucket": objects.bucket, "Key": objects.name("silver/large")}
    upload = objects.client.create_multipart_upload(**place)["UploadId"]
    objects.client.upload_part(**place, UploadId=upload, PartNumber=1, Body=b"x" * (5 << 20))

    def is_there() -> bool:
        try:
            return bool(objects.client.list_parts(**place, UploadId=upload)["Parts"])
        except objects.client.exceptions.NoSuchUpload:
            return False

    assert is_there()
    wait_until(lambda: not is_there(), _SCAN_S, "the upload is still there")


@pytest.mark.usefixtures("server")
def test_init_that_runs_again_changes_no_rule() -> None:
    command = [*ADLOOM, "init", "--lake", _LAKE]
    first, second = (
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=os.environ).stdout
        for _ in range(2)
    )
    assert "lifecycle rules: set\n" in first
    assert "lifecycle rules: set already" in second
