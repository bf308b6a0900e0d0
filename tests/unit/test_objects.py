"""A conditional write whose answer is lost, and that is sent again."""

from io import BytesIO
from typing import Any

import pytest
from botocore.exceptions import ClientError

from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.store.files import StoreKeys
from spark_jobs.lake.store.objects import Objects


class _Store:
    """A client that answers every conditional write with a refusal, after so many tries."""

    def __init__(self, there: bytes, tries: int) -> None:
        self._there, self._tries = there, tries

    def put_object(self, **_: Any) -> None:
        answer: Any = {"Error": {"Code": "PreconditionFailed"}, "ResponseMetadata": {"RetryAttempts": self._tries}}
        raise ClientError(answer, "PutObject")

    def get_object(self, **_: Any) -> dict[str, Any]:
        return {"Body": BytesIO(self._there), "ETag": "tag"}


@pytest.mark.parametrize(
    ("there", "retries", "is_created"),
    [
        pytest.param(b"own", 1, True, id="its own, repeated"),
        pytest.param(b"own", 0, False, id="equal, of another process"),
        pytest.param(b"other", 1, False, id="another's, repeated"),
    ],
)
def test_a_repeated_request_finds_what_the_first_has_written(there: bytes, retries: int, is_created: bool) -> None:  # noqa: FBT001 a parameter
    objects = Objects("s3a://bucket/lake", S3Settings(), keys=StoreKeys("key", "secret"))
    objects.client = _Store(there, retries)
    assert objects.create("plan.json", b"own") == is_created
    assert objects.replace("plan.json", b"own", "tag") is None
