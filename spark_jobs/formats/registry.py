"""The schema registry, over Confluent's interface: Confluent's own, Karapace, Apicurio, Redpanda.

Two requests are all that is needed, so this is the standard library's client: Confluent's own would add five packages,
and it decides by itself what to repeat and for how long. Both requests give what never changes, so answers can be kept
for ever.

Source: `Confluent, "Schema Registry API"
<https://docs.confluent.io/platform/current/schema-registry/develop/api.html>`_.
"""

import base64
import json
import logging
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import IO, Any
from urllib.parse import quote

from spark_jobs.config.durations import format_duration
from spark_jobs.config.sections import RegistrySettings
from spark_jobs.errors import RegistryError, SettingsError
from spark_jobs.formats.refusal import incompatible, unknown
from spark_jobs.formats.schema import AVRO, Schema
from spark_jobs.http import open_url

_LOG = logging.getLogger(__name__)
_SCHEMA_NOT_FOUND = 40403
_REFERENCE_NOT_FOUND = (40401, 40402)
_NOT_FOUND, _TOO_MANY, _SERVER_ERROR = 404, 429, 500
_REFUSED = (401, 403)
_REDIRECTS = range(300, 400)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_MOST_BYTES = 16 * 1024 * 1024
_MOST_IMPORTS = 1000


class _Away(Exception):  # noqa: N818 it is waited for
    """Raised when the registry does not answer now, but may later."""


class _Missing(Exception):  # noqa: N818 it becomes a verdict
    """Raised when the registry says that it has no such schema."""


class RegistryClient:
    """Asks the registry for schemas, and waits for it while it is away."""

    def __init__(
        self,
        settings: RegistrySettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Sends no request yet.

        Args:
            settings: of the registry.
            sleep: pauses for the given number of seconds.
            clock: seconds that have passed since some moment.

        Raises:
            SettingsError: registry.ca_file cannot be read.
        """
        self._settings, self._sleep, self._clock = settings, sleep, clock
        self._tls, self._has_answered = _tls(settings), False

    def schema(self, schema_id: int) -> Schema:
        """The schema with this id, and all that it refers to.

        Raises:
            Refused: with ``unknown_schema``: the registry has no such schema, or not what it refers to.
            RegistryError: the registry refuses the client or is no registry, or has been away for registry.patience.
        """
        name = f"schema {schema_id}"
        try:
            found = self._get(f"/schemas/ids/{schema_id}", _SCHEMA_NOT_FOUND)
        except _Missing:
            raise unknown(f"the registry has no {name}") from None
        imports: dict[str, str] = {}
        self._add_imports(found, imports, name, set())
        return Schema(found.get("schemaType") or AVRO, _text(found, name), tuple(imports.items()), name)

    def _add_imports(self, found: dict[str, Any], imports: dict[str, str], name: str, above: set[str]) -> None:
        """Adds what a schema refers to, each after what it needs itself."""
        for reference in found.get("references") or ():
            imported = str(reference["name"])
            if imported in imports:
                continue
            if imported in above or len(imports) > _MOST_IMPORTS:
                raise incompatible(f"{name} refers to {imported}, which refers to itself")
            subject, version = str(reference["subject"]), int(reference["version"])
            try:
                path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
                inner = self._get(path, *_REFERENCE_NOT_FOUND)
            except _Missing:
                raise unknown(f"{name} refers to version {version} of {subject}, which the registry has not") from None
            self._add_imports(inner, imports, name, {*above, imported})
            imports[imported] = _text(inner, f"version {version} of {subject}")

    def _get(self, path: str, *missing: int) -> dict[str, Any]:
        """The answer to a request, which is repeated while the registry is away.

        Args:
            path: of the request.
            missing: the registry's codes for what it has not.
        """
        started, pause = self._clock(), _FIRST_PAUSE_S
        patience = self._settings.patience.total_seconds()
        while True:
            reasons = []
            for url in self._settings.url:
                try:
                    return self._ask(url + path, missing)
                except _Away as away:
                    reasons.append(f"{url}: {away}")
            waited = self._clock() - started
            if waited + pause > patience:
                raise RegistryError(
                    f"the schema registry has been away for {waited:.0f} s, longer than registry.patience "
                    f"{format_duration(self._settings.patience)} allows ({'; '.join(reasons)}); nothing is lost: start "
                    "the registry, check registry.url, and start the job again"
                )
            _LOG.warning("the schema registry is away (%s); asking again in %.1f s", "; ".join(reasons), pause)
            self._sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _ask(self, url: str, missing: tuple[int, ...]) -> dict[str, Any]:
        # The settings allow http:// and https:// only.
        request = urllib.request.Request(url, headers=self._headers())  # noqa: S310
        try:
            with open_url(request, timeout_s=self._settings.timeout.total_seconds(), tls=self._tls) as answer:
                found = _parsed(answer, url)
                self._has_answered = True
                return found
        except urllib.error.HTTPError as error:
            with error:
                raise self._explained(error, url, missing) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise RegistryError(
                    f"the schema registry's certificate at {url} is not trusted ({reason.verify_message}); set "
                    "registry.ca_file to the PEM file of its certificate authority"
                ) from None
            raise _Away(str(reason) or type(reason).__name__) from None

    def _explained(self, error: urllib.error.HTTPError, url: str, missing: tuple[int, ...]) -> Exception:
        if error.code == _TOO_MANY or error.code >= _SERVER_ERROR:
            return _Away(f"HTTP {error.code}")
        code, text = _problem(error)
        if error.code in _REDIRECTS:
            text = error.reason
        # What has given a schema is a registry, so this is its way to say that it has not this one.
        if code in missing or (error.code == _NOT_FOUND and self._has_answered):
            self._has_answered = True
            return _Missing()
        if error.code in _REFUSED:
            return RegistryError(
                f"the schema registry refuses the user at {url} (HTTP {error.code}); set ADLOOM_REGISTRY__USERNAME and "
                "ADLOOM_REGISTRY__PASSWORD, and check what the user may read"
            )
        return RegistryError(
            f"the schema registry answers {url} with HTTP {error.code}{f', {text}' if text else ''}; check that "
            "registry.url is the address of a registry with Confluent's interface, with its path"
        )

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self._settings.username:
            login = f"{self._settings.username}:{self._settings.password.get_secret_value()}"
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        return headers


def _tls(settings: RegistrySettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"registry.ca_file {settings.ca_file} cannot be read as PEM certificates: {error.strerror or error}"
        ) from error


def _parsed(answer: IO[bytes], url: str) -> dict[str, Any]:
    try:
        found = json.loads(answer.read(_MOST_BYTES))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RegistryError(f"what answers at {url} is no schema registry: it sends no JSON object; check registry.url")
    return found


def _problem(error: urllib.error.HTTPError) -> tuple[int, str]:
    """The registry's own code and text."""
    try:
        found = json.loads(error.read(_MOST_BYTES))
        return int(found["error_code"]), str(found.get("message", ""))[:200]
    except (OSError, HTTPException, ValueError, TypeError, KeyError):
        return 0, ""


def _text(found: dict[str, Any], name: str) -> str:
    if not isinstance(text := found.get("schema"), str):
        raise RegistryError(f"the schema registry's answer for {name} has no schema; check registry.url")
    return text
