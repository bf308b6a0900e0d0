"""The features of MinIO beyond S3: users, policies, and versioning that excludes parts of a bucket."""

import json
from typing import Any
from urllib.parse import urlsplit

import urllib3
from minio import Minio
from minio.credentials.providers import Provider, StaticProvider
from minio.error import MinioAdminException, MinioException, S3Error
from minio.minioadmin import MinioAdmin
from minio.versioningconfig import VersioningConfig

from spark_jobs.config.sections import S3Settings
from spark_jobs.errors import LakeError
from spark_jobs.lake.store.objects import credentials

_ENABLED = "Enabled"
_TIMEOUT = urllib3.Timeout(connect=5, read=20)
_RETRIES = urllib3.Retry(total=2, backoff_factor=0.5)


class MinioServer:
    """The admin API of a MinIO server."""

    def __init__(self, settings: S3Settings) -> None:
        """Sets up the client; sends no request yet."""
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
        """Whether the store is MinIO and accepts these keys as an administrator's."""
        try:
            json.loads(self._admin.info())
        except (MinioException, MinioAdminException, ValueError, urllib3.exceptions.HTTPError):
            return False
        return True

    def keep_versions(self, bucket: str, *, but_not: str) -> None:
        """Enables versioning of ``bucket``, except below the prefix ``but_not``, which may contain ``*``."""
        store = Minio(endpoint=self._endpoint, credentials=self._keys, secure=self._is_tls, http_client=self._pool)
        try:
            found = store.get_bucket_versioning(bucket_name=bucket)
            excluded = sorted({*(found.excluded_prefixes or []), but_not})
            if found.status != _ENABLED or excluded != sorted(found.excluded_prefixes or []):
                store.set_bucket_versioning(
                    bucket_name=bucket, config=VersioningConfig(status=_ENABLED, excluded_prefixes=excluded)
                )
        except S3Error as error:
            raise LakeError(
                f"MinIO at {self._endpoint} cannot enable versioning of {bucket}: {error.message}"
            ) from error

    def policy(self, name: str) -> dict[str, Any] | None:
        """The policy ``name``; None if MinIO does not have it."""
        names = json.loads(self._call("policies", self._admin.policy_list))
        if name not in names:
            return None
        found: dict[str, Any] = json.loads(self._call(f"policy {name}", self._admin.policy_info, policy_name=name))
        return found

    def set_policy(self, name: str, policy: dict[str, Any]) -> None:
        """Creates or replaces the policy ``name``."""
        self._call(f"policy {name}", self._admin.policy_add, policy_name=name, policy=policy)

    def has_user(self, name: str) -> bool:
        """Whether the user ``name`` exists."""
        return name in json.loads(self._call("users", self._admin.user_list))

    def add_user(self, name: str, secret: str, policy: str) -> None:
        """Creates the user ``name`` or changes its secret, and attaches ``policy``; its other policies stay."""
        self._call(f"user {name}", self._admin.user_add, access_key=name, secret_key=secret)
        held = json.loads(self._call(f"user {name}", self._admin.user_info, access_key=name)).get("policyName", "")
        if policy not in held.split(","):
            self._call(f"policy of user {name}", self._admin.attach_policy, policies=[policy], user=name)

    def detach(self, policy: str, user: str) -> bool:
        """Takes ``policy`` from the user ``name``; whether it had it."""
        held = json.loads(self._call(f"user {user}", self._admin.user_info, access_key=user)).get("policyName", "")
        if policy not in held.split(","):
            return False
        self._call(f"policy of user {user}", self._admin.detach_policy, policies=[policy], user=user)
        return True

    def _call(self, what: str, method: Any, **options: Any) -> str:
        try:
            return str(method(**options))
        except MinioAdminException as error:
            raise LakeError(f"MinIO at {self._endpoint}: {what}: {str(error)[:300]}") from error
