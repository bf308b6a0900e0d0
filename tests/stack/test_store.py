"""What adloom demands of an object store: conditional writes, which locks and commits rest on."""

import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.lease import Lease
from spark_jobs.lake.lock import hold_job
from spark_jobs.lake.open import check_store, open_lake
from spark_jobs.lake.store.bucket import prepare_bucket
from spark_jobs.lake.store.conditional_writes import check_conditional_writes
from spark_jobs.lake.store.minio_admin import MinioServer
from spark_jobs.lake.store.objects import Objects
from tests.stack.lax_store import REFUSE, lax_store
from tests.stack.minio import Minio
from tests.support.drivers import ADLOOM

pytestmark = pytest.mark.stack

_KEY = "_progress/attribute/driver.lock"


@pytest.fixture
def lake(minio: Minio) -> Lake:
    """A lake of the test's own, prepared as `adloom init` does."""
    settings = S3Settings(endpoint=minio.endpoint)
    lake = open_lake(f"s3a://conditions-{secrets.token_hex(4)}/lake", settings)
    assert isinstance(lake.files, Objects)
    list(prepare_bucket(lake.files, settings, MinioServer(settings)))
    return lake


@pytest.fixture
def objects(lake: Lake) -> Objects:
    assert isinstance(lake.files, Objects)
    return lake.files


def _requests_of(objects: Objects) -> list[str]:
    """The names of the requests that ``objects`` makes from now on."""
    made: list[str] = []
    objects.client.meta.events.register("before-call.s3", lambda model, **_: made.append(model.name))
    return made


def test_a_store_that_obeys_conditions_is_asked_once_and_left_as_it_was(minio: Minio, lake: Lake) -> None:
    objects = Objects(lake.root, S3Settings(endpoint=minio.endpoint.replace("127.0.0.1", "localhost")))
    requests = _requests_of(objects)
    check_conditional_writes(objects)
    assert requests == ["PutObject"] * 4 + ["DeleteObjects"]
    check_conditional_writes(objects)
    assert len(requests) == 5
    assert objects.names("") == []


@pytest.mark.parametrize(
    ("removed", "reason"),
    [
        pytest.param(["if-none-match"], "ignores If-None-Match: *", id="created-twice"),
        pytest.param(["if-match"], "ignores If-Match", id="stale"),
        pytest.param(["if-none-match", "if-match"], "ignores If-None-Match: *", id="neither"),
        pytest.param([REFUSE], "does not support the request", id="not-implemented"),
    ],
)
def test_a_store_that_does_not_is_refused_before_anything_is_written(
    minio: Minio, lake: Lake, removed: list[str], reason: str
) -> None:
    with lax_store(minio, *removed) as endpoint:
        settings = S3Settings(endpoint=endpoint)
        lax = open_lake(lake.root, settings)
        with pytest.raises(LakeError, match=reason.replace("*", r"\*")):
            check_store(lax)
        with pytest.raises(LakeError, match="conditional writes"), hold_job(lax, "attribute", settings):
            pytest.fail("the job was started")
    assert lake.files.names("") == []


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("init",), id="init"),
        pytest.param(("job", "attribute"), id="job"),
    ],
)
def test_commands_refuse_such_a_store_in_one_line(minio: Minio, lake: Lake, command: tuple[str, ...]) -> None:
    with lax_store(minio, "if-match", "if-none-match") as endpoint:
        environment = {"ADLOOM_S3__ENDPOINT": endpoint}
        done = _adloom(*command, "--lake", lake.root, **environment)
    assert done.returncode == 1
    last_line = done.stderr.strip().splitlines()[-1]
    assert last_line.startswith(f"error: lake {lake.root}: the store at {endpoint} ignores If-None-Match: *")
    assert "use a store that supports them" in last_line


def _adloom(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*ADLOOM, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def _lease(objects: Objects, seconds: float) -> Lease:
    # A process that lives: only the renewals say whether the lock is held.
    return Lease(objects, _KEY, seconds, (1,))


@pytest.fixture
def held(objects: Objects) -> Iterator[Lease]:
    lease = _lease(objects, 8)
    assert lease.acquire()
    yield lease
    lease.release()


def test_a_file_is_created_once(objects: Objects) -> None:
    assert objects.create("plan.json", b"first")
    assert not objects.create("plan.json", b"second")
    assert objects.read("plan.json") == b"first"


def test_a_living_lock_is_not_taken_by_one_whose_own_lease_is_shorter(objects: Objects, held: Lease) -> None:
    impatient = _lease(objects, 0.4)
    assert not impatient.acquire()
    time.sleep(2.5)  # a renewal later
    assert not held.loss


def test_a_lock_whose_holder_fell_silent_is_taken_after_the_holders_lease(objects: Objects) -> None:
    silent = _lease(objects, 3)
    assert silent.acquire()
    silent._ended.set()
    begin = time.monotonic()
    next_one = _lease(objects, 0.4)
    assert next_one.acquire()
    assert time.monotonic() - begin >= 3
    next_one.release()


@pytest.mark.parametrize("length", [{}, {"lease_seconds": "20"}, {"lease_seconds": -1}, {"lease_seconds": 1e999}])
def test_a_lock_that_does_not_say_its_length_is_judged_by_ones_own(objects: Objects, length: dict[str, object]) -> None:
    objects.write(_KEY, json.dumps({"name": "an older version", "is_held": True, **length}).encode())
    begin = time.monotonic()
    lease = _lease(objects, 1.5)
    assert lease.acquire()
    assert 1.5 <= time.monotonic() - begin < 6
    lease.release()
