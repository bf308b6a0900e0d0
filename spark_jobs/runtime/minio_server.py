"""What MinIO offers beyond S3: users, policies, and versions for a part of a bucket only."""

import json
from typing import Any
from urllib.parse import urlsplit

import urllib3
from minio import Minio
from minio.credentials.providers import Provider, StaticProvider
from minio.error import MinioAdminException, MinioException, S3Error
from minio.minioadmin import MinioAdmin
from minio.versioningconfig import VersioningConfig

from spark_jobs.contracts.errors import LakeError
from spark_jobs.contracts.sections import S3Settings
from spark_jobs.runtime.objects import credentials

_ENABLED = "Enabled"
_TIMEOUT = urllib3.Timeout(connect=5, read=20)
_RETRIES = urllib3.Retry(total=2, backoff_factor=0.5)


class MinioServer:
    """The interface for administrators of a MinIO server."""

    def __init__(self, settings: S3Settings) -> None:
        """Names the server; nothing is asked of it yet."""
        parts = urlsplit(settings.endpoint)
        self._endpoint, self._is_tls = parts.netloc, parts.scheme == "https"
        self._pool = urllib3.PoolManager(
            timeout=_TIMEOUT, retries=_RETRIES, ca_certs=str(settings.ca_file) if settings.ca_file else None
        )
        self._keys: Provider = StaticProvider(*credentials(settings))
        self._admin = MinioAdmin(
            endpoint=self._endpoint, credentials=self._keys, secure=self._is_tls, http_client=self._pool
        )

    def is_there(self) -> bool:
        """Whether the store is MinIO and lets us administer it."""
        try:
            json.loads(self._admin.info())
        except (MinioException, MinioAdminException, ValueError, urllib3.exceptions.HTTPError):
            return False
        return True

    def keep_versions(self, bucket: str, *, but_not: str) -> None:
        """Keeps versions of the objects of ``bucket``, but not below the prefix ``but_not``, which may hold ``*``."""
        store = Minio(endpoint=self._endpoint, credentials=self._keys, secure=self._is_tls, http_client=self._pool)
        try:
            found = store.get_bucket_versioning(bucket_name=bucket)
            excluded = sorted({*(found.excluded_prefixes or []), but_not})
            if found.status != _ENABLED or excluded != sorted(found.excluded_prefixes or []):
                store.set_bucket_versioning(
                    bucket_name=bucket, config=VersioningConfig(status=_ENABLED, excluded_prefixes=excluded)
                )
        except S3Error as error:
            raise LakeError(f"MinIO at {self._endpoint} does not keep versions of {bucket}: {error.message}") from error

    def set_policy(self, name: str, policy: dict[str, Any]) -> None:
        """Makes or replaces the policy ``name``."""
        self._ask(f"policy {name}", self._admin.policy_add, policy_name=name, policy=policy)

    def has_user(self, name: str) -> bool:
        """Whether there is a user ``name``."""
        return name in json.loads(self._ask("users", self._admin.user_list))

    def add_user(self, name: str, secret: str, policy: str) -> None:
        """Makes the user ``name``, or gives it ``secret``, and attaches ``policy``, beside others that it has."""
        self._ask(f"user {name}", self._admin.user_add, access_key=name, secret_key=secret)
        held = json.loads(self._ask(f"user {name}", self._admin.user_info, access_key=name)).get("policyName", "")
        if policy not in held.split(","):
            self._ask(f"policy of user {name}", self._admin.attach_policy, policies=[policy], user=name)

    def _ask(self, what: str, question: Any, **options: Any) -> str:
        try:
            return str(question(**options))
        except MinioAdminException as error:
            told = str(error)
            raise LakeError(f"MinIO at {self._endpoint}: {what}: {told[:300]}") from error
