"""Whether an object store honours conditional requests, on which locks and commits rely.

Delta and Spark's checkpoints create each commit with ``If-None-Match: *``, and a lease is renewed with ``If-Match``. A
store that ignores these headers reports success, and the second of two writers silently replaces the work of the first.
"""

import secrets

from spark_jobs.errors import LakeError
from spark_jobs.lake.store.objects import Objects
from spark_jobs.places import PROGRESS

_ONLY_IF_NEW, _ONLY_IF_UNCHANGED = "If-None-Match: *", "If-Match"
_passed: set[tuple[str, str]] = set()
"""Endpoint and bucket of the stores that have passed: a process probes each of them once."""


def check_conditional_writes(objects: Objects) -> None:
    """Checks with four small writes and a delete that the store rejects a write whose condition does not hold.

    It cannot show that the store decides atomically between two requests that arrive at the same moment.

    Raises:
        LakeError: the store ignores a condition or does not support it, or does not answer.
    """
    if (store := (objects.endpoint, objects.bucket)) in _passed:
        return
    # Below the progress folder, of which MinIO keeps no old versions.
    key = f"{PROGRESS}/probe-{secrets.token_hex(8)}"
    tag = _must_write(objects, key, b"created", None, _ONLY_IF_NEW)
    try:
        _must_refuse(objects, key, None, _ONLY_IF_NEW)
        _must_write(objects, key, b"changed", tag, _ONLY_IF_UNCHANGED)
        _must_refuse(objects, key, tag, _ONLY_IF_UNCHANGED)
    finally:
        objects.delete([key])
    _passed.add(store)


def _must_write(objects: Objects, key: str, data: bytes, tag: str | None, condition: str) -> str:
    new_tag = objects.replace(key, data, tag)
    if new_tag is None:
        # If the answer to a first attempt was lost, the retry is rejected because the first one succeeded.
        found = objects.read_version(key)
        if found is None or found[0] != data:
            raise _error(objects, f"rejects a write with {condition} whose condition holds")
        new_tag = found[1]
    return new_tag


def _must_refuse(objects: Objects, key: str, tag: str | None, condition: str) -> None:
    if objects.replace(key, b"must not be written", tag) is not None:
        raise _error(objects, f"ignores {condition}: it replaced an object that the condition protects")


def _error(objects: Objects, what: str) -> LakeError:
    return LakeError(
        f"lake {objects.root}: the store at {objects.endpoint or 'Amazon S3'} {what}. Without conditional writes two "
        "drivers could overwrite each other's commits, and rows would be lost or duplicated; use a store that supports "
        "them (Amazon S3 and MinIO do), upgrade this one, or take out the proxy that removes the header"
    )
