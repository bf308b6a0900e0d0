"""Preparing a bucket for a lake: versioning with expiry, so that an accidental delete can be undone for a while."""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from spark_jobs.config.choices import Role
from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.store.minio_admin import MinioServer
from spark_jobs.lake.store.objects import Objects, explaining
from spark_jobs.places import PROGRESS, RELEASES, REPORTS

KEPT_DAYS = 7
"""How long a replaced or deleted version can be restored."""
_WRITTEN: dict[Role, tuple[str, ...]] = {
    Role.JOBS: ("*",),
    Role.AIRFLOW: (f"{RELEASES}/*", f"{REPORTS}/*", f"{PROGRESS}/*"),
    Role.ANALYST: (),
}
"""The keys of a lake that each role may write."""
_READ: dict[Role, tuple[str, ...]] = {Role.JOBS: ("", "*"), Role.AIRFLOW: ("", "*"), Role.ANALYST: ("gold/*",)}
"""The keys that each role may list and read."""


def prepare_bucket(objects: Objects, settings: S3Settings, server: MinioServer | None) -> Iterator[str]:
    """Creates the bucket of a lake, with versioning and lifecycle rules; changes nothing that is already in place.

    Args:
        objects: of the lake.
        settings: of the store.
        server: the admin API of the store, if it is MinIO.

    Yields:
        A line for each step, whether it was needed or not.

    Raises:
        LakeError: a request to the store failed.
    """
    client, bucket = objects.client, objects.bucket
    with explaining(settings, objects.root, bucket, "creating the bucket"):
        yield f"bucket {bucket}: {'created' if _create(client, bucket, settings) else 'exists'}"
        versioned = client.get_bucket_versioning(Bucket=bucket).get("Status") == "Enabled"
    with explaining(settings, objects.root, bucket, "enabling versioning"):
        if server:
            # Lock renewals and progress reports would leave thousands of versions a day.
            server.keep_versions(bucket, but_not=f"{objects.name(PROGRESS)}/*")
        elif not versioned:
            client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        yield f"versioning: {'on' if versioned else 'turned on'}; old versions are kept for {KEPT_DAYS} days"
    with explaining(settings, objects.root, bucket, "setting lifecycle rules"):
        changed = _set_lifecycle(client, bucket, objects.prefix)
        yield f"lifecycle rules: {'set' if changed else 'set already'}"


def _create(client: Any, bucket: str, settings: S3Settings) -> bool:
    try:
        client.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:  # noqa: PLR2004
            raise
        at_amazon = not settings.endpoint and settings.region != "us-east-1"
        where = {"CreateBucketConfiguration": {"LocationConstraint": settings.region}} if at_amazon else {}
        client.create_bucket(Bucket=bucket, **where)
        return True
    return False


def _set_lifecycle(client: Any, bucket: str, prefix: str) -> bool:
    """Adds the rules of the lake at ``prefix`` to those of others. Returns whether any was new."""
    wanted = {rule["ID"]: rule for rule in _rules(prefix)}
    try:
        found = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
            raise
        found = []
    if all(any(rule.items() <= other.items() for other in found) for rule in wanted.values()):
        return False
    others = [rule for rule in found if rule["ID"] not in wanted]
    client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [*others, *wanted.values()]}
    )
    return True


def _rules(prefix: str) -> Iterator[dict[str, Any]]:
    for name, folder, days in (("lake", prefix, KEPT_DAYS), ("progress", f"{prefix}/{PROGRESS}".lstrip("/"), 1)):
        yield {
            "ID": f"adloom {prefix or 'root'} {name}",
            "Status": "Enabled",
            "Filter": {"Prefix": f"{folder}/".lstrip("/")},
            "NoncurrentVersionExpiration": {"NoncurrentDays": days},
        }


def policy_of(objects: Objects, role: Role) -> dict[str, Any]:
    """The policy of ``role``: its rights on the lake, and none outside of it."""
    bucket, read = f"arn:aws:s3:::{objects.bucket}", [objects.name(keys) for keys in _READ[role]]
    writing = {
        "Effect": "Allow",
        "Action": ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"],
        "Resource": [f"{bucket}/{objects.name(keys)}" for keys in _WRITTEN[role]],
    }
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [bucket],
                "Condition": {"StringLike": {"s3:prefix": read}},
            },
            {"Effect": "Allow", "Action": ["s3:GetBucketLocation"], "Resource": [bucket]},
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject"],
                "Resource": [f"{bucket}/{keys}" for keys in read if keys.endswith("*")],
            },
            *([writing] if writing["Resource"] else []),
        ],
    }
