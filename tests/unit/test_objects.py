"""What is asked of an object store: conditional writes that are sent again, checksums, rules of others."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ClientError

from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.store.bucket import harmful_rules, has_expiry, prepare_bucket
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


class _Answer:
    def stream(self) -> list[bytes]:
        return []


def _sent_with(objects: Objects) -> tuple[str, str | None]:
    """The access key and session token of a request."""
    sent: list[AWSPreparedRequest] = []

    def answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 200, {}, _Answer())

    objects.client.meta.events.register("before-send.s3.PutObject", answer, unique_id="own")
    objects.write("plan.json", b"own")
    objects.client.meta.events.unregister("before-send.s3.PutObject", unique_id="own")
    headers = {name.lower(): _plain(value) for name, value in sent[0].headers.items()}
    key = headers["authorization"].partition("Credential=")[2].partition("/")[0]
    return key, headers.get("x-amz-security-token")


def _plain(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _profile(key: str, token: str) -> str:
    return f"[jobs]\naws_access_key_id = {key}\naws_secret_access_key = s\naws_session_token = {token}\n"


def test_keys_that_an_agent_replaces_in_the_profile_are_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_text(_profile("first", "t1"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    objects = Objects("s3a://bucket/lake", S3Settings(endpoint="http://localhost:1", profile="jobs"))
    assert _sent_with(objects) == ("first", "t1")
    hasty = objects.hasty(1.0)
    new = tmp_path / "new"
    new.write_text(_profile("second", "t2"))
    new.replace(file)
    assert _sent_with(objects) == ("second", "t2")
    assert _sent_with(hasty) == ("second", "t2")
    file.write_text("[jo")
    assert _sent_with(objects) == ("second", "t2"), "half a file is no reason to lose the keys"
    file.write_text(_profile("third", "t3"))
    assert _sent_with(objects) == ("third", "t3")
    file.unlink()
    assert _sent_with(objects) == ("third", "t3")


def test_the_session_token_of_given_keys_is_sent() -> None:
    keys = StoreKeys("key", "secret", "token")
    assert _sent_with(Objects("s3a://b/lake", S3Settings(endpoint="http://localhost:1"), keys=keys)) == ("key", "token")
    assert "token'" not in repr(keys)


def test_a_store_from_before_2025_gets_no_checksum_that_it_would_refuse() -> None:
    objects = Objects("s3a://bucket/lake", S3Settings(endpoint="http://localhost:1"), keys=StoreKeys("key", "secret"))
    sent: list[AWSPreparedRequest] = []

    def answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 200, {}, _Answer())

    objects.client.meta.events.register("before-send.s3.PutObject", answer)
    objects.write("plan.json", b"own")
    names = [name.lower() for name in sent[0].headers]
    assert not [name for name in names if "checksum" in name or "trailer" in name]


_DAYS_30 = {"Expiration": {"Days": 30}}
_GLACIER = {"Transitions": [{"Days": 90, "StorageClass": "GLACIER"}]}


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"Filter": {"Prefix": ""}, **_DAYS_30}, "rule r deletes files of the whole bucket after 30 days"),
        ({"Filter": {}, **_DAYS_30}, "rule r deletes files of the whole bucket after 30 days"),
        ({"Prefix": "ads", **_GLACIER}, "rule r moves files of ads to GLACIER after 90 days"),
        (
            {"Filter": {"Prefix": "ads/lake/bronze/"}, **_DAYS_30},
            "rule r deletes files of ads/lake/bronze/ after 30 days",
        ),
        ({"Filter": {"And": {"Prefix": "ads/", "ObjectSizeGreaterThan": 1}}, **_DAYS_30}, "deletes files of ads/"),
        ({"Filter": {"Prefix": "ads/lake2/"}, **_DAYS_30}, None),
        ({"Filter": {"Prefix": "adserver"}, **_DAYS_30}, None),
        ({"Filter": {"Tag": {"Key": "k", "Value": "v"}}, **_DAYS_30}, None),
        ({"Filter": {"Prefix": ""}, "Status": "Disabled", **_DAYS_30}, None),
        ({"Filter": {"Prefix": ""}, "Expiration": {"ExpiredObjectDeleteMarker": True}}, None),
        ({"Filter": {"Prefix": ""}, "NoncurrentVersionExpiration": {"NoncurrentDays": 7}}, None),
        ({"Filter": {"Prefix": ""}, "Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}]}, None),
    ],
)
def test_rules_of_others_that_take_files_of_the_lake_away_are_found(rule: dict[str, Any], says: str | None) -> None:
    objects = Objects("s3a://bucket/ads/lake", S3Settings(), keys=StoreKeys("key", "secret"))

    class Rules:
        def get_bucket_lifecycle_configuration(self, **_: Any) -> dict[str, Any]:
            return {"Rules": [{"ID": "r", "Status": "Enabled", **rule}]}

    objects.client = Rules()
    found = list(harmful_rules(objects))
    assert len(found) == (says is not None)
    assert (says or "") in "".join(found)


class _Bucket:
    """A bucket that exists, of a store that is not MinIO."""

    def __init__(self, rules: list[dict[str, Any]]) -> None:
        self.rules = rules

    def head_bucket(self, **_: Any) -> None: ...

    def get_bucket_versioning(self, **_: Any) -> dict[str, str]:
        return {"Status": "Enabled"}

    def get_bucket_lifecycle_configuration(self, **_: Any) -> dict[str, Any]:
        return {"Rules": self.rules}

    def put_bucket_lifecycle_configuration(self, *, LifecycleConfiguration: dict[str, Any], **_: Any) -> None:  # noqa: N803
        self.rules = LifecycleConfiguration["Rules"]


def test_old_versions_delete_markers_and_unfinished_uploads_expire_also_where_an_older_adloom_set_rules() -> None:
    objects = Objects("s3a://bucket/ads/lake", S3Settings(), keys=StoreKeys("key", "secret"))
    before = {
        "ID": "adloom ads/lake lake",
        "Status": "Enabled",
        "Filter": {"Prefix": "ads/lake/"},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 7},
    }
    others = {**before, "ID": "of somebody", "Filter": {"Prefix": "other/"}}
    objects.client = _Bucket([before, others])
    assert not has_expiry(objects)
    assert list(prepare_bucket(objects, S3Settings(), None))[-1] == "lifecycle rules: set"
    assert has_expiry(objects)
    first, *own = objects.client.rules
    assert first == others
    assert [rule["Filter"]["Prefix"] for rule in own] == ["ads/lake/", "ads/lake/_progress/"]
    for rule in own:
        assert rule["Expiration"] == {"ExpiredObjectDeleteMarker": True}
        assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    assert list(prepare_bucket(objects, S3Settings(), None))[-1] == "lifecycle rules: set already"
