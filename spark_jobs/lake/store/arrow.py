"""The data files of a lake as Arrow reads them: on this machine's disks, or in the object store."""

from urllib.parse import urlsplit

from pyarrow.fs import LocalFileSystem, S3FileSystem

from spark_jobs.config.sections import S3Settings
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.table_rows import RowStore

_CONNECT_S, _READ_S = 5, 20


def row_store(lake: Lake, settings: S3Settings) -> RowStore:
    """The place of the data files of ``lake``. Sends no request.

    Raises:
        SettingsError: there is no such profile, or there are no keys.
    """
    if lake.is_local:
        return RowStore(LocalFileSystem(), str(lake.path))
    return RowStore(s3_filesystem(settings), lake.root.partition("://")[2])


def s3_filesystem(settings: S3Settings) -> S3FileSystem:
    """The object store, for paths as ``bucket/key``. Sends no request.

    Raises:
        SettingsError: there is no such profile, or there are no keys.
    """
    # boto3 takes a moment to load, and a lake in a folder does not need it.
    from spark_jobs.lake.store.objects import credentials  # noqa: PLC0415

    access_key, secret_key, token = credentials(settings)
    endpoint = urlsplit(settings.endpoint)
    return S3FileSystem(
        access_key=access_key,
        secret_key=secret_key,
        session_token=token,
        region=settings.region,
        scheme=endpoint.scheme or "https",
        endpoint_override=endpoint.netloc or None,
        force_virtual_addressing=bool(endpoint.netloc) and not settings.path_style,
        connect_timeout=_CONNECT_S,
        request_timeout=_READ_S,
        tls_ca_file_path=str(settings.ca_file) if settings.ca_file else None,
    )
