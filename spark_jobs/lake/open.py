"""Opening a lake: from the location a user gives to its root and files."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.store.files import StoreKeys, hadoop_uri
from spark_jobs.lake.store.local import LocalFiles
from spark_jobs.places import PROGRESS

OBJECT_STORE = "s3a"
_GOOGLE = ". Google's connector, and a lock by generation numbers, are not built in"
_AZURE = ". Azure's connector, and a lock by ETags, are not built in"
_OTHER_CLOUDS = {
    **dict.fromkeys(("gs", "gcs"), _GOOGLE),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az", "adl"), _AZURE),
}
"""By scheme, what is missing for it: docs/containers.md, "Which stores"."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def open_lake(
    location: str, s3: S3Settings | None = None, *, is_patient: bool = False, keys: StoreKeys | None = None
) -> Lake:
    """The lake at ``location``, which need not exist yet; reads and writes nothing.

    Args:
        location: ``s3a://bucket/prefix``, a ``file:///`` URI, or a plain path, which may be relative.
        s3: the object store of an ``s3a://`` location.
        is_patient: whether to retry an unavailable object store for as long as Spark does.
        keys: of the object store, instead of those that ``s3`` and the environment name.

    Raises:
        SettingsError: ``location`` is empty, malformed or has an unsupported scheme.
    """
    parts = urlsplit(location)
    if not location.strip():
        raise SettingsError("the lake's location is empty; give a folder, as in --lake ./lake, or s3a://bucket/prefix")
    if parts.scheme in (OBJECT_STORE, "s3"):
        return _open_objects(location, s3 or S3Settings(), is_patient=is_patient, keys=keys)
    if parts.scheme not in ("", "file"):
        raise SettingsError(
            f"lake {location!r}: scheme {parts.scheme!r} is not supported; give a folder, a file:/// URI or "
            f"s3a://bucket/prefix{_OTHER_CLOUDS.get(parts.scheme, '')}"
        )
    path = local_path(location)
    return Lake(hadoop_uri(path).rstrip("/"), LocalFiles(path))


def local_path(location: str) -> Path:
    """The absolute path of ``location``, a ``file:///`` URI or a plain path, which may be relative."""
    parts = urlsplit(location)
    return Path(unquote(parts.path) if parts.scheme == "file" else location).expanduser().resolve()


def check_store(lake: Lake) -> None:
    """Checks that ``lake`` can be written, so that a command fails at once and with one line.

    Raises:
        LakeError: the store does not answer, refuses the keys, shows a certificate that is not trusted, has no such
            bucket, or ignores conditional requests.
    """
    lake.files.names(PROGRESS)
    if not lake.is_local:
        # Imported here: boto3 takes a moment to load, and a lake in a folder does not need it.
        from spark_jobs.lake.store.conditional_writes import check_conditional_writes  # noqa: PLC0415
        from spark_jobs.lake.store.objects import Objects  # noqa: PLC0415

        assert isinstance(lake.files, Objects)  # noqa: S101 what is not local is in an object store
        check_conditional_writes(lake.files)


def open_existing(location: str, s3: S3Settings | None = None) -> Lake:
    """The lake at ``location``, which must exist.

    Raises:
        SettingsError: see :func:`open_lake`.
        LakeError: there is no lake, or its store does not answer.
    """
    lake = open_lake(location, s3)
    if not lake.files.names(""):
        raise LakeError(f"no lake at {lake.shown()}; run `adloom run --lake {location}` first")
    return lake


def _open_objects(location: str, s3: S3Settings, *, is_patient: bool, keys: StoreKeys | None) -> Lake:
    # Imported here: boto3 takes a moment to load, and a lake in a folder does not need it.
    from spark_jobs.lake.store.objects import Objects  # noqa: PLC0415

    parts = urlsplit(location)
    if not _BUCKET.fullmatch(parts.netloc):
        raise SettingsError(
            f"lake {location!r}: {parts.netloc!r} is not a bucket name; give s3a://bucket/prefix, with a bucket of 3 "
            "to 63 lowercase letters, digits, dots and hyphens (no user, password or port)"
            if "@" not in parts.netloc
            else "the lake's location contains a user or password, which do not belong on a command line; set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead"
        )
    prefix = parts.path.strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise SettingsError(f"lake {location!r}: the prefix must not contain empty parts, . or ..")
    root = f"{OBJECT_STORE}://{parts.netloc}/{prefix}".rstrip("/")
    return Lake(root, Objects(root, s3, is_patient=is_patient, keys=keys))
