"""Alerts about failed tasks."""

import json
import logging
import os
import urllib.request
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from spark_jobs.config.secret_files import value_of
from spark_jobs.errors import SettingsError
from spark_jobs.http import open_url

_URL = "ADLOOM_ALERT_URL"
_TIMEOUT_S = 10
_log = logging.getLogger(__name__)


def alert_on_failure(context: Any) -> None:
    """Logs that a task failed, and posts it as JSON (``text``, ``dag``, ``task``, ``run``) to ``ADLOOM_ALERT_URL``.

    The URL may contain a key, so it is never logged. An alert that cannot be sent does not affect the task.
    """
    instance = context["task_instance"]
    reason = str(context.get("exception") or "no reason was given")
    text = f"{instance.dag_id}: {instance.task_id} failed: {reason}"
    _log.error("%s", text)
    try:
        address = value_of(os.environ, _URL)
    except SettingsError as error:
        _log.error("no alert was sent: %s", error)
        return
    if not address:
        return
    if urlsplit(address).scheme not in ("http", "https"):
        _log.error("%s is not an http or https URL; no alert was sent", _URL)
        return
    message = {"text": text, "dag": instance.dag_id, "task": instance.task_id, "run": context["run_id"]}
    request = urllib.request.Request(  # noqa: S310 the scheme was checked above
        address, data=json.dumps(message).encode(), headers={"Content-Type": "application/json"}
    )
    try:
        open_url(request, timeout_s=_TIMEOUT_S).close()
    except HTTPError as error:
        with error:
            _log.error("the alert was not taken by %s: HTTP %d, %s", _URL, error.code, error.reason)
    except OSError as error:
        _log.error("the alert could not be sent to %s: %s", _URL, type(error).__name__)
