"""A small JSON client for the REST interfaces of YARN.

No maintained Python client for YARN exists: yarn-api-client had its last release in 2021, hadoop-yarn-rest-api in 2019.
"""

import http.client
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from ad_dags.drivers.launchers.launcher import LauncherError
from spark_jobs.http import open_url

_TIMEOUT_S = 20
_MOST_BYTES = 10_000_000


@dataclass(frozen=True)
class Rest:
    """The interface at ``address``; ``name`` is for messages."""

    name: str
    address: str

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer, parsed from JSON; None if there is no such resource.

        Raises:
            LauncherError: it does not answer, or refuses.
        """
        text = self.text(method, path, body)
        try:
            return None if text is None else json.loads(text or "null")
        except ValueError as error:
            raise LauncherError(
                f"{self.name} at {self.address} answers {method} {path} with no JSON: {error}"
            ) from None

    def text(self, method: str, path: str, body: dict[str, Any] | None = None) -> str | None:
        """The answer as text; None if there is no such resource.

        Raises:
            LauncherError: it does not answer, or refuses.
        """
        request = urllib.request.Request(  # noqa: S310 the address is the operator's
            self.address.rstrip("/") + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Accept": "application/json, text/plain", "Content-Type": "application/json"},
        )
        try:
            with open_url(request, timeout_s=_TIMEOUT_S) as answer:
                content: bytes = answer.read(_MOST_BYTES)
                return content.decode(errors="replace")
        except urllib.error.HTTPError as error:
            with error:
                if error.code == http.client.NOT_FOUND:
                    return None
                why = error.read(500).decode(errors="replace").strip() or error.reason
            raise LauncherError(
                f"{self.name} at {self.address} answers {method} {path} with {error.code}: {why}"
            ) from None
        except OSError as error:
            raise LauncherError(f"{self.name} at {self.address} does not answer: {error}") from None
