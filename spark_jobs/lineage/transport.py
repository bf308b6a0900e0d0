"""Sends events: to a file, or to a server of OpenLineage."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable

from spark_jobs.config.choices import LineageTransport
from spark_jobs.config.sections import LineageSettings
from spark_jobs.errors import LineageError
from spark_jobs.http import open_url
from spark_jobs.lineage.facets import Event

_TIMEOUT_S = 20
Send = Callable[[Event], None]


def transport(settings: LineageSettings) -> Send:
    """How events are sent.

    Raises:
        LineageError: nothing says where to; or, later, an event cannot be sent.
    """
    if settings.transport is LineageTransport.FILE:
        return lambda event: _append(settings, event)
    if settings.transport is LineageTransport.HTTP:
        return lambda event: _post(settings, event)
    raise LineageError("lineage.transport is none, so nothing is sent; set it to file or http")


def _append(settings: LineageSettings, event: Event) -> None:
    assert settings.file  # noqa: S101 the settings were checked
    line = (json.dumps(event, separators=(",", ":")) + "\n").encode()
    try:
        settings.file.parent.mkdir(parents=True, exist_ok=True)
        # One write: two processes never mix their lines.
        place = os.open(settings.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(place, line)
            os.fsync(place)
        finally:
            os.close(place)
    except OSError as error:
        raise LineageError(f"lineage.file {settings.file} cannot be written: {error.strerror}") from error


def _post(settings: LineageSettings, event: Event) -> None:
    headers = {"Content-Type": "application/json"}
    if key := settings.api_key.get_secret_value():
        headers["Authorization"] = f"Bearer {key}"
    # The setting takes http and https only.
    request = urllib.request.Request(settings.url, json.dumps(event).encode(), headers)  # noqa: S310
    try:
        open_url(request, timeout_s=_TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        with error:
            answer = error.read(300).decode(errors="replace").strip()
        raise LineageError(f"{settings.url} refuses the event with {error.code}: {answer or error.reason}") from error
    except OSError as error:
        raise LineageError(f"{settings.url} does not answer: {error}; check lineage.url") from error
