"""Whether the lake can be written, and whether the store keeps old versions."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from spark_jobs.operations.doctor.description import Check, Finding, Subject, attempt, fine, warning, wrong

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

    from spark_jobs.lake.store.objects import Objects

_SKEW, _REFUSED_SKEW = timedelta(seconds=5), timedelta(minutes=15)
"""Differences between clocks that leases and watermarks tolerate, and that an S3 store accepts."""


def _look(subject: Subject) -> Iterator[Finding]:
    lake = subject.lake
    if not lake.is_local:
        # boto3 takes a moment to load, and a lake in a folder does not need it.
        from spark_jobs.lake.store.objects import Objects  # noqa: PLC0415

        assert isinstance(lake.files, Objects)  # noqa: S101 what is not local is in an object store
        yield from _clock(subject, lake.files)
        yield from attempt(_conditional_writes(lake.files))
        yield from attempt(_versioning(lake.files))
        yield from attempt(_lifecycle(lake.files))
    if not lake.files.names(""):
        yield warning(f"there is no lake at {lake.shown()} yet", "run `adloom run` or the jobs, or give another --lake")
    elif lake.is_local:
        yield fine(f"{lake.shown()} is a folder that can be read")


def _clock(subject: Subject, objects: "Objects") -> Iterator[Finding]:
    """From the answer to a listing, which the jobs' keys may ask for; a refusal has a date, too, and ends the check."""
    from botocore.exceptions import ClientError  # noqa: PLC0415

    from spark_jobs.lake.store.objects import explaining  # noqa: PLC0415

    before = datetime.now(UTC)
    with explaining(subject.settings.s3, objects.root, objects.bucket, "listing the lake"):
        try:
            answer = objects.client.list_objects_v2(
                Bucket=objects.bucket, Prefix=f"{objects.name('')}/".lstrip("/"), MaxKeys=1
            )
        except ClientError as error:
            yield from _skew(before, error.response)
            raise
    yield from _skew(before, answer)


def _skew(before: datetime, answer: Mapping[str, Any]) -> Iterator[Finding]:
    said_at = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    if said_at is None:
        return
    said = parsedate_to_datetime(said_at)
    # The store reports whole seconds.
    skew = max(before - said - timedelta(seconds=1), said - datetime.now(UTC), timedelta())
    text = f"the store's clock and this machine's differ by {skew.total_seconds():.0f} s"
    if skew > _REFUSED_SKEW:
        yield wrong(text, "set the clocks, by NTP: the store refuses requests of more than 15 minutes")
    elif skew > _SKEW:
        yield warning(text, "set the clocks, by NTP: locks and `event_time_in_future` depend on them")
    else:
        yield fine("the store's clock and this machine's agree")


def _conditional_writes(objects: "Objects") -> Iterator[Finding]:
    from spark_jobs.lake.store.conditional_writes import check_conditional_writes  # noqa: PLC0415

    check_conditional_writes(objects)
    yield fine(f"{objects.root} can be listed and written, with conditional writes")


def _versioning(objects: "Objects") -> Iterator[Finding]:
    from botocore.exceptions import ClientError  # noqa: PLC0415

    try:
        status = objects.client.get_bucket_versioning(Bucket=objects.bucket).get("Status")
    except ClientError as error:
        yield _unreadable("whether it keeps old versions", error)
        return
    if status == "Enabled":
        yield fine("the bucket keeps old versions, so that a deleted file can be restored")
    else:
        yield warning("the bucket keeps no old versions: what is deleted is gone", "run `adloom init` as administrator")


def _unreadable(what: str, error: "ClientError") -> Finding:
    """The jobs' own keys may not ask the bucket, and need not."""
    why = error.response.get("Error", {}).get("Code", "")
    return fine(f"the bucket: {what} cannot be read with these keys ({why}); `adloom init` looks at it")


def _lifecycle(objects: "Objects") -> Iterator[Finding]:
    from botocore.exceptions import ClientError  # noqa: PLC0415

    from spark_jobs.lake.store.bucket import harmful_rules, has_expiry  # noqa: PLC0415

    try:
        harm, expires = list(harmful_rules(objects)), has_expiry(objects)
    except ClientError as error:
        yield _unreadable("its lifecycle rules", error)
        return
    for one in harm:
        yield wrong(f"lifecycle {one}", "leave the lake's prefix out of the rule: a lake needs its oldest files")
    if not harm:
        yield fine("no lifecycle rule of the bucket deletes or archives files of the lake")
    if not expires:
        yield warning(
            "no lifecycle rule ends old versions and delete markers of the lake, which grow by each file deleted",
            "run `adloom init` as administrator",
        )


CHECK = Check(2, "store", _look)
