"""Telling people that a task failed."""

import json
import logging
import os
import urllib.request
from typing import Any
from urllib.parse import urlsplit

_URL = "ADLOOM_ALERT_URL"
_TIMEOUT_S = 10
_log = logging.getLogger(__name__)


def tell_of_failure(context: Any) -> None:
    """Logs that a task failed, and posts it as JSON (``text``, ``dag``, ``task``, ``run``) to ``ADLOOM_ALERT_URL``.

    The address may hold a key, so it is never told. An alert that cannot be sent changes nothing for the task.
    """
    instance = context["task_instance"]
    reason = str(context.get("exception") or "no reason was given")
    text = f"{instance.dag_id}: {instance.task_id} failed: {reason}"
    _log.error("%s", text)
    address = os.environ.get(_URL, "")
    if not address:
        return
    if urlsplit(address).scheme not in ("http", "https"):
        _log.error("%s is no http address; the failure is told here only", _URL)
        return
    told = {"text": text, "dag": instance.dag_id, "task": instance.task_id, "run": context["run_id"]}
    request = urllib.request.Request(  # noqa: S310 its scheme was looked at
        address, data=json.dumps(told).encode(), headers={"Content-Type": "application/json"}
    )
    try:
        urllib.request.urlopen(request, timeout=_TIMEOUT_S).close()  # noqa: S310
    except OSError as error:
        _log.error("the failure could not be told to %s: %s", _URL, type(error).__name__)
