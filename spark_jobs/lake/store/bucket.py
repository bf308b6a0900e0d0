"""Preparing a bucket for a lake: versioning with expiry, so that an accidental delete can be undone for a while."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from botocore.exceptions import ClientError

from spark_jobs.config.choices import Role
from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS
from spark_jobs.errors import LakeError
from spark_jobs.lake.store.minio_admin import MinioServer
from spark_jobs.lake.store.objects import Objects, explaining
from spark_jobs.places import CREDIT_FEED, FEED, PROGRESS, RELEASES, REPORTS

KEPT_DAYS = 7
"""How long a replaced or deleted version can be restored, and an upload can take."""
_WRITTEN: dict[Role, tuple[str, ...]] = {
    Role.JOBS: ("*",),
    Role.AIRFLOW: (f"{RELEASES}/*", f"{REPORTS}/*", f"{PROGRESS}/*"),
    Role.PAGES: (f"{PROGRESS}/*",),
    Role.ANALYST: (),
}
"""The keys of a lake that each role may write."""
_READ: dict[Role, tuple[str, ...]] = {
    Role.JOBS: ("", "*"),
    Role.AIRFLOW: ("", "*"),
    # Not the reports' failing rows, nor a release, which may hold settings.
    Role.PAGES: (
        *(f"{PROGRESS}/*", f"{REPORTS}/*.html", f"{REPORTS}/*.json", f"{RELEASES}/deployed/*"),
        *(FEED, CREDIT_FEED, *(f"{table.path}/_delta_log/*" for table in (ATTRIBUTIONS, SESSIONS))),
    ),
    Role.ANALYST: ("gold/*",),
}
"""The keys that each role may list and read."""


_ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
"""Classes of storage whose objects cannot be read before they are restored."""


def prepare_bucket(objects: Objects, settings: S3Settings, server: MinioServer | None) -> Iterator[str]:
    """Creates the bucket of a lake, with versioning and lifecycle rules; changes nothing that is already in place.

    Args:
        objects: of the lake.
        settings: of the store.
        server: the admin API of the store, if it is MinIO.

    Yields:
        A line for each step, whether it was needed or not.

    Raises:
        LakeError: a request to the store failed, or a rule of the bucket would take files of the lake away.
    """
    client, bucket = objects.client, objects.bucket
    with explaining(settings, objects.root, bucket, "creating the bucket"):
        yield f"bucket {bucket}: {'created' if _create(client, bucket, settings) else 'exists'}"
        versioned = client.get_bucket_versioning(Bucket=bucket).get("Status") == "Enabled"
        harm = list(harmful_rules(objects))
    if harm:
        raise LakeError(
            f"a lifecycle rule of bucket {bucket} would damage {objects.root}: {'; '.join(harm)}; a lake needs its "
            "oldest files as much as its newest: leave its prefix out of the rule, or give the lake another bucket"
        )
    with explaining(settings, objects.root, bucket, "enabling versioning"):
        if server:
            # Lock renewals and progress reports would leave thousands of versions a day.
            server.keep_versions(bucket, but_not=f"{objects.name(PROGRESS)}/*")
        elif not versioned:
            client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        yield f"versioning: {'on' if versioned else 'turned on'}; old versions are kept for {KEPT_DAYS} days"
    with explaining(settings, objects.root, bucket, "setting lifecycle rules"):
        # MinIO has no rule for uploads: it ends each after a day itself.
        changed = _set_lifecycle(client, bucket, objects.prefix, ends_uploads=server is not None)
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


def harmful_rules(objects: Objects) -> Iterator[str]:
    """The lifecycle rules of the bucket that delete or archive current files of the lake, each in words.

    Raises:
        ClientError: the rules cannot be read.
    """
    folder = f"{objects.prefix}/".lstrip("/")
    for rule in _rules_of(objects.client, objects.bucket):
        chosen = rule.get("Filter", {})
        chosen = chosen.get("And", chosen)
        prefix = str(chosen.get("Prefix", rule.get("Prefix", "")))
        is_near = folder.startswith(prefix) or prefix.startswith(folder)
        # The files of a lake have no tags.
        if rule["Status"] != "Enabled" or not is_near or "Tag" in chosen or chosen.get("Tags"):
            continue
        name = f"rule {rule.get('ID') or 'without a name'}"
        if when := _age(rule.get("Expiration", {})):
            yield f"{name} deletes files of {prefix or 'the whole bucket'} {when}"
        for move in rule.get("Transitions", ()):
            if move.get("StorageClass") in _ARCHIVES:
                yield f"{name} moves files of {prefix or 'the whole bucket'} to {move['StorageClass']} {_age(move)}"


def has_expiry(objects: Objects) -> bool:
    """Whether the bucket has the rules of :func:`prepare_bucket`; those of an older adloom left delete markers behind.

    Raises:
        ClientError: the rules cannot be read.
    """
    return _are_set(_rules_of(objects.client, objects.bucket), _rules(objects.prefix, ends_uploads=True))


def _are_set(found: list[dict[str, Any]], wanted: Iterable[dict[str, Any]]) -> bool:
    return all(any(rule.items() <= other.items() for other in found) for rule in wanted)


def _age(when: dict[str, Any]) -> str:
    if "Days" in when:
        return f"after {when['Days']} days"
    return f"on {when['Date']:%Y-%m-%d}" if "Date" in when else ""


def _rules_of(client: Any, bucket: str) -> list[dict[str, Any]]:
    try:
        return list(client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
            raise
        return []


def _set_lifecycle(client: Any, bucket: str, prefix: str, *, ends_uploads: bool) -> bool:
    """Adds the rules of the lake at ``prefix`` to those of others. Returns whether any was new."""
    wanted = {rule["ID"]: rule for rule in _rules(prefix, ends_uploads=ends_uploads)}
    found = _rules_of(client, bucket)
    others = [rule for rule in found if rule["ID"] not in wanted and not _is_earlier(rule, wanted.values())]
    if len(others) + len(wanted) == len(found) and _are_set(found, wanted.values()):
        return False
    client.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [*others, *wanted.values()]}
    )
    return True


def _rules(prefix: str, *, ends_uploads: bool) -> Iterator[dict[str, Any]]:
    """The rules of the lake at ``prefix``; ``ends_uploads``: the store itself ends uploads that nobody finishes."""
    unfinished = {} if ends_uploads else {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": KEPT_DAYS}}
    for name, folder, days in (("lake", prefix, KEPT_DAYS), ("progress", f"{prefix}/{PROGRESS}".lstrip("/"), 1)):
        yield {
            # Because of the slash, a lake in the folder "root" and one at the bucket's root have different names.
            "ID": f"adloom /{prefix} {name}",
            "Status": "Enabled",
            "Filter": {"Prefix": f"{folder}/".lstrip("/")},
            "NoncurrentVersionExpiration": {"NoncurrentDays": days},
            # A deleted file leaves a marker, and jobs delete hundreds of thousands of files a day.
            "Expiration": {"ExpiredObjectDeleteMarker": True},
            **unfinished,
        }


def _is_earlier(rule: dict[str, Any], wanted: Iterable[dict[str, Any]]) -> bool:
    """Whether ``rule`` is that of the same lake under the name that earlier versions gave it."""
    return rule["ID"].startswith("adloom ") and any(rule.get("Filter") == one["Filter"] for one in wanted)


def policy_name(objects: Objects, role: Role) -> str:
    """The name of the policy of ``role``: readable, and by its digest another one for each lake and role."""
    digest = hashlib.sha256(f"{objects.root}\0{role}".encode()).hexdigest()[:16]
    return f"{earlier_policy_name(objects, Role.JOBS)[:60]}-{role}-{digest}"


def earlier_policy_name(objects: Objects, role: Role) -> str:
    """The name that earlier versions gave it, and two lakes may have in common."""
    return f"adloom-{objects.root.partition('://')[2].replace('/', '-')}" + ("" if role is Role.JOBS else f"-{role}")


def foreign_resources(objects: Objects, policy: dict[str, Any]) -> list[str]:
    """The resources of ``policy`` outside of the lake, to which no policy of adloom's gives rights."""
    bucket = f"arn:aws:s3:::{objects.bucket}"
    named = {one for statement in policy.get("Statement", ()) for one in _listed(statement.get("Resource", ()))}
    inside = f"{bucket}/{objects.name('')}/" if objects.prefix else f"{bucket}/"
    return sorted(one for one in named if one != bucket and not one.startswith(inside))


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


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
                "Resource": [f"{bucket}/{keys}" for keys in read if keys != objects.prefix],
            },
            *([writing] if writing["Resource"] else []),
        ],
    }
