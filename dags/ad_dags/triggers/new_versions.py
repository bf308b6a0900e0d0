"""Noticing that the gold tables have something new, in the triggerer."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from ad_dags.place import find_place
from spark_jobs.contracts.errors import AdloomError
from spark_jobs.contracts.lake import VALIDATED, Lake
from spark_jobs.contracts.tables import ATTRIBUTIONS, SESSIONS


class NewVersionsTrigger(BaseEventTrigger):
    """Tells, at most every ``pause_s`` seconds, that a gold table has a version that nobody has found good yet.

    A streaming job commits many times a minute, and a validation takes a minute: so the pause. What a validation did
    not find good is told once, not again and again until somebody has mended it.
    """

    def __init__(self, pause_s: float = 900.0, poll_s: float = 30.0) -> None:
        super().__init__()
        self.pause_s, self.poll_s = pause_s, poll_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What Airflow makes it anew from."""
        return (f"{type(self).__module__}.{type(self).__qualname__}", {"pause_s": self.pause_s, "poll_s": self.poll_s})

    async def run(self) -> AsyncGenerator[TriggerEvent, None]:
        """An event each time, with the ``versions`` of the tables that have something new."""
        told: dict[str, int] = {}
        while True:
            try:
                new = await asyncio.to_thread(_new_versions, told)
            except AdloomError as error:
                self.log.warning("the gold tables cannot be looked at: %s", error)
                new = {}
            if new:
                told |= new
                yield TriggerEvent({"versions": new})
            await asyncio.sleep(self.pause_s if new else self.poll_s)


def _new_versions(told: dict[str, int]) -> dict[str, int]:
    return new_versions(find_place().lake, told)


def new_versions(lake: Lake, told: dict[str, int]) -> dict[str, int]:
    """By name, the newest version of the gold tables that have one which was neither ``told`` nor found good."""
    good = _validated(lake)
    newest = {table.name: lake.newest_commit(table.path) for table in (ATTRIBUTIONS, SESSIONS)}
    return {
        name: version
        for name, version in newest.items()
        if version is not None and version > max(good.get(name, -1), told.get(name, -1))
    }


def _validated(lake: Lake) -> dict[str, int]:
    try:
        found = json.loads(lake.files.read(VALIDATED) or b"{}")
    except ValueError:
        return {}  # the validation says what is wrong with it
    return found if isinstance(found, dict) else {}
