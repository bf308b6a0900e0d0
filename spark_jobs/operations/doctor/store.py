"""Whether the lake can be written, and whether the store keeps old versions."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from spark_jobs.lake.open import check_store
from spark_jobs.operations.doctor.description import Check, Finding, Subject, fine, warning, wrong

if TYPE_CHECKING:
    from spark_jobs.lake.store.objects import Objects

_SKEW, _REFUSED_SKEW = timedelta(seconds=5), timedelta(minutes=15)
"""Differences between clocks that leases and watermarks tolerate, and that an S3 store accepts."""


def _look(subject: Subject) -> Iterator[Finding]:
    lake = subject.lake
    check_store(lake)
    if not lake.files.names(""):
        yield warning(f"there is no lake at {lake.shown()} yet", "run `adloom run` or the jobs, or give another --lake")
        return
    if lake.is_local:
        yield fine(f"{lake.shown()} is a folder that can be read")
        return
    yield fine(f"{lake.shown()} can be listed and written, with conditional writes")
    # boto3 takes a moment to load, and a lake in a folder does not need it.
    from spark_jobs.lake.store.objects import Objects  # noqa: PLC0415

    assert isinstance(lake.files, Objects)  # noqa: S101 what is not local is in an object store
    yield _clock(subject, lake.files)
    yield from _versioning(subject, lake.files)
    yield from _lifecycle(lake.files)


def _clock(subject: Subject, objects: "Objects") -> Finding:
    from spark_jobs.lake.store.objects import explaining  # noqa: PLC0415

    before = datetime.now(UTC)
    with explaining(subject.settings.s3, objects.root, objects.bucket, "looking at the bucket"):
        answer = objects.client.head_bucket(Bucket=objects.bucket)
    said = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    # The store reports whole seconds.
    skew = max(before - said - timedelta(seconds=1), said - datetime.now(UTC), timedelta())
    text = f"the store's clock and this machine's differ by {skew.total_seconds():.0f} s"
    if skew > _REFUSED_SKEW:
        return wrong(text, "set the clocks, by NTP: the store refuses requests of more than 15 minutes")
    if skew > _SKEW:
        return warning(text, "set the clocks, by NTP: locks and `event_time_in_future` depend on them")
    return fine("the store's clock and this machine's agree")


def _versioning(subject: Subject, objects: "Objects") -> Iterator[Finding]:
    from spark_jobs.lake.store.objects import explaining  # noqa: PLC0415

    with explaining(subject.settings.s3, objects.root, objects.bucket, "asking for versioning"):
        status = objects.client.get_bucket_versioning(Bucket=objects.bucket).get("Status")
    if status == "Enabled":
        yield fine("the bucket keeps old versions, so that a deleted file can be restored")
    else:
        yield warning("the bucket keeps no old versions: what is deleted is gone", "run `adloom init` as administrator")


def _lifecycle(objects: "Objects") -> Iterator[Finding]:
    from botocore.exceptions import ClientError  # noqa: PLC0415

    from spark_jobs.lake.store.bucket import harmful_rules  # noqa: PLC0415

    try:
        harm = list(harmful_rules(objects))
    except ClientError as error:
        why = error.response["Error"]["Code"]
        yield fine(f"the bucket's lifecycle rules cannot be read with these keys ({why}); `adloom init` looks at them")
        return
    for one in harm:
        yield wrong(f"lifecycle {one}", "leave the lake's prefix out of the rule: a lake needs its oldest files")
    if not harm:
        yield fine("no lifecycle rule of the bucket deletes or archives files of the lake")


CHECK = Check(2, "store", _look, is_basis=True)
