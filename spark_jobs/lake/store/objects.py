"""The small files of a lake in an S3-compatible object store, read and written with boto3."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.credentials import CredentialProvider, CredentialResolver, Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ProfileNotFound, SSLError
from botocore.session import Session as BotocoreSession

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeError, SettingsError
from spark_jobs.lake.store.files import FileInfo, StoreKeys
from spark_jobs.lake.store.profiles import profile_files

_DELETE_BATCH = 1000
_NO_KEYS = "no keys are given"
_CONNECT_S, _READ_S = 5, 20
_ATTEMPTS, _PATIENT_ATTEMPTS = 4, 16
"""With growing pauses of up to 20 s: the first give up after seconds, the second after more than a minute."""
_MISSING = ("NoSuchKey", "404")
_CONFLICT = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_REFUSED = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken", "403")


class Objects:
    """A bucket's objects below a prefix; see :class:`spark_jobs.lake.store.files.Files`.

    Every method raises a LakeError if a request fails.
    """

    def __init__(
        self, root: str, settings: S3Settings, *, is_patient: bool = False, keys: StoreKeys | None = None
    ) -> None:
        """Sets up the client; sends no request yet.

        Args:
            root: ``s3a://bucket/prefix``.
            settings: where the store is, and whose keys to use.
            is_patient: whether to retry an unavailable store for as long as Spark does; by default requests fail within
                seconds.
            keys: to be used instead of those that ``settings`` and the environment name.

        Raises:
            SettingsError: there is no such profile.
        """
        parts = urlsplit(root)
        self.bucket, self.prefix = parts.netloc, parts.path.strip("/")
        self._settings, self._keys, self.root, self.endpoint = settings, keys, root, settings.endpoint
        self.client = client(settings, is_patient=is_patient, keys=keys)

    def hasty(self, timeout_s: float) -> "Objects":
        """The same objects, for requests that are not repeated and fail if nothing comes for ``timeout_s`` seconds."""
        other = copy(self)
        other.client = client(self._settings, keys=self._keys, timeout_s=timeout_s)
        return other

    def read(self, key: str) -> bytes | None:
        """The object's content; None if there is no such object."""
        found = self.read_version(key)
        return found[0] if found else None

    def read_version(self, key: str) -> tuple[bytes, str] | None:
        """The object's content and the ETag of this version; None if there is no such object."""
        with self._explaining(f"reading {key}"):
            try:
                answer = self.client.get_object(Bucket=self.bucket, Key=self.name(key))
                return answer["Body"].read(), answer["ETag"]
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise

    def write(self, key: str, data: bytes) -> None:
        """Writes ``data`` to the object, atomically."""
        with self._explaining(f"writing {key}"):
            self.client.put_object(Bucket=self.bucket, Key=self.name(key), Body=data)

    def create(self, key: str, data: bytes) -> bool:
        """Writes ``data`` to the object if it does not exist, atomically; whether it did."""
        return self.replace(key, data, None) is not None

    def replace(self, key: str, data: bytes, tag: str | None) -> str | None:
        """Writes ``data`` if the object's ETag is still ``tag`` or, where ``tag`` is None, if the object is missing.

        Returns:
            The ETag of the new version; None if the condition did not hold.
        """
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        with self._explaining(f"writing {key}"):
            try:
                answer = self.client.put_object(Bucket=self.bucket, Key=self.name(key), Body=data, **condition)
                return str(answer["ETag"])
            except ClientError as error:
                if _code(error) not in (*_CONFLICT, *_MISSING):
                    raise
                # The answer to a first request may have been lost: then the second finds the object of the first.
                was_repeated = error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0
                found = self.read_version(key) if was_repeated and tag is None else None
                return found[1] if found and found[0] == data else None

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """Every object below ``folder``."""
        for page in self._pages(folder):
            for found in page.get("Contents", ()):
                if found["Key"].endswith("/"):
                    continue  # a placeholder for a folder
                yield FileInfo(self._key(found["Key"]), found["Size"], found["LastModified"])

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """The sorted names in ``folder`` that sort after ``after``."""
        start = len(self.name(folder)) + 1
        found: set[str] = set()
        skipping = {"StartAfter": f"{self.name(folder)}/{after}"} if after else {}
        for page in self._pages(folder, Delimiter="/", **skipping):
            found.update(one["Key"][start:] for one in page.get("Contents", ()))
            found.update(one["Prefix"][start:].rstrip("/") for one in page.get("CommonPrefixes", ()))
        return sorted(found - {""})

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes the objects."""
        self._delete([self.name(key) for key in keys])

    def delete_folder(self, folder: str) -> None:
        """Deletes the objects below ``folder``, placeholders of folders included."""
        self._delete([found["Key"] for page in self._pages(folder) for found in page.get("Contents", ())])

    def _delete(self, names: list[str]) -> None:
        for first in range(0, len(names), _DELETE_BATCH):
            batch = [{"Key": name} for name in names[first : first + _DELETE_BATCH]]
            with self._explaining(f"deleting {len(batch)} objects"):
                answer = self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": batch, "Quiet": True})
            if errors := answer.get("Errors"):
                raise LakeError(f"{self.root}: {errors[0]['Key']} could not be deleted: {errors[0]['Message']}")

    def _pages(self, folder: str, **options: str) -> Iterator[dict[str, Any]]:
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"{self.name(folder)}/".lstrip("/"), **options
        )
        with self._explaining(f"listing {folder or 'the bucket'}"):
            yield from pages

    def name(self, key: str) -> str:
        """The object's full key in the bucket."""
        return f"{self.prefix}/{key}".strip("/")

    def _key(self, name: str) -> str:
        return name[len(self.prefix) :].lstrip("/")

    @contextmanager
    def _explaining(self, what: str) -> Iterator[None]:
        with explaining(self._settings, self.root, self.bucket, what):
            yield


def client(
    settings: S3Settings, *, is_patient: bool = False, keys: StoreKeys | None = None, timeout_s: float | None = None
) -> Any:
    """A boto3 client; with ``keys``, if there are any, instead of those that the settings and the environment name.

    With ``timeout_s`` it repeats no request, and waits no longer than that for a connection, or for an answer.

    Raises:
        SettingsError: there is no such profile.
    """
    if keys:
        session = boto3.Session(keys.access_key, keys.secret_key, keys.session_token or None)
    else:
        session = _following(_session(settings), settings)
    attempts = 1 if timeout_s else _PATIENT_ATTEMPTS if is_patient else _ATTEMPTS
    return session.client(
        "s3",
        region_name=settings.region,
        endpoint_url=settings.endpoint or None,
        verify=str(settings.ca_file) if settings.ca_file else None,
        config=Config(
            connect_timeout=min(_CONNECT_S, timeout_s or _CONNECT_S),
            read_timeout=timeout_s or _READ_S,
            retries={"mode": "standard", "total_max_attempts": attempts},
            s3={"addressing_style": "path" if settings.path_style else "auto"},
            # Stores from before 2025 refuse the checksums that boto3 adds otherwise.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def credentials(settings: S3Settings) -> tuple[str, str, str | None]:
    """The access key, secret key and session token in use. Never print them.

    Raises:
        SettingsError: there is no such profile, or there are no keys.
    """
    found = _session(settings).get_credentials()
    if found is None:
        raise SettingsError(f"{_NO_KEYS}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or s3.profile")
    keys = found.get_frozen_credentials()
    return keys.access_key, keys.secret_key, keys.token


def _session(settings: S3Settings) -> boto3.Session:
    try:
        return boto3.Session(profile_name=settings.profile or None)
    except ProfileNotFound as error:
        raise SettingsError(
            f"s3.profile {settings.profile!r} is not in ~/.aws; name one that is, or set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        ) from error


def _following(session: boto3.Session, settings: S3Settings) -> boto3.Session:
    """A session like ``session`` whose keys are those that the profiles' files hold at each request."""
    if (found := session.get_credentials()) is None:
        return session
    inner = BotocoreSession(profile=settings.profile or None)
    follower = _KeysOfFiles(found, lambda: _session(settings).get_credentials())
    inner.register_component("credential_provider", CredentialResolver([_Provider(follower)]))
    return boto3.Session(botocore_session=inner)


class _KeysOfFiles(Credentials):  # type: ignore[misc] # botocore has no types
    """Keys that are looked up again when a file of profiles has changed: agents rewrite it before keys expire.

    boto3 reads a profile once; the Java SDK looks again, too.
    """

    def __init__(self, found: Credentials, look_up: Callable[[], Credentials | None]) -> None:
        self._found, self._look_up, self._seen = found, look_up, _state_of_files()
        self._lock = threading.Lock()

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """The keys as of now; those from before while the files hold none, as when one is being written."""
        with self._lock:
            if (state := _state_of_files()) != self._seen:
                try:
                    found = self._look_up()
                except (SettingsError, BotoCoreError):
                    found = None
                if found is not None:
                    self._found, self._seen = found, state
            return self._found.get_frozen_credentials()


class _Provider(CredentialProvider):  # type: ignore[misc] # the same
    def __init__(self, keys: Credentials) -> None:
        super().__init__()
        self._keys = keys

    def load(self) -> Credentials:
        return self._keys


def _state_of_files() -> tuple[tuple[int, int, int] | None, ...]:
    return tuple(map(_state, profile_files()))


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


@contextmanager
def explaining(settings: S3Settings, root: str, bucket: str, what: str) -> Iterator[None]:
    """Turns an error of boto3 into one line that says what to do.

    Args:
        settings: of the store.
        root: of the lake.
        bucket: of the lake.
        what: what was attempted, as in "reading a.json".

    Raises:
        LakeError: the request failed.
    """
    where = settings.endpoint or "Amazon S3"
    try:
        yield
    except ClientError as error:
        code = _code(error)
        if code == "NoSuchBucket":
            why = f"there is no bucket {bucket}; create it with `adloom init --lake {root}`"
        elif code in _REFUSED:
            why = (
                f"the store rejects the keys ({code}); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                f"or s3.profile, and that their policy allows the bucket {bucket}"
            )
        elif code == "NotImplemented":
            why = (
                f"the store does not support the request ({_message(error)}); adloom needs conditional writes "
                "(If-None-Match, If-Match), as Amazon S3 and MinIO offer them"
            )
        else:
            why = f"{code}: {_message(error)}"
    except NoCredentialsError:
        why = f"{_NO_KEYS}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or s3.profile"
    except SSLError as error:
        why = (
            f"the store's certificate is not trusted ({_last_reason(error)}); "
            "set s3.ca_file to the PEM file of its certificate authority"
        )
    except BotoCoreError as error:
        why = f"the store does not answer ({_last_reason(error)}); check s3.endpoint and that the store is running"
    else:
        return
    raise LakeError(f"lake {root} at {where}: {what}: {why}") from None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _message(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", "no reason given"))


def _last_reason(error: BotoCoreError) -> str:
    return str(error).rpartition(": ")[2].strip(" ()")[:200]
