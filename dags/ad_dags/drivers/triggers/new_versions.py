"""Watches the gold tables for new versions, in the triggerer."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from ad_dags.connection.lake_connection import connect
from ad_dags.connection.lakes import LakeRef
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS
from spark_jobs.errors import AdloomError
from spark_jobs.lake.layout import Lake
from spark_jobs.places import VALIDATED


class NewVersionsTrigger(BaseEventTrigger):
    """Fires, at most every ``pause_s`` seconds, when a gold table has a version that no validation has passed yet.

    The pause is there because a streaming job commits many times a minute and a validation takes about a minute. A
    version that failed its validation fires once, not again and again until somebody has fixed it.
    """

    def __init__(self, pause_s: float = 900.0, poll_s: float = 30.0, connection: str = "") -> None:
        """``connection`` is a lake's: a trigger is stored as JSON."""
        super().__init__()
        self.pause_s, self.poll_s, self.connection = pause_s, poll_s, connection

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and arguments from which Airflow recreates the trigger."""
        kwargs = {"pause_s": self.pause_s, "poll_s": self.poll_s, "connection": self.connection}
        return (f"{type(self).__module__}.{type(self).__qualname__}", kwargs)

    async def run(self) -> AsyncGenerator[TriggerEvent, None]:
        """Events with the ``versions`` of the tables that have something new."""
        fired: dict[str, int] = {}
        while True:
            try:
                new = await asyncio.to_thread(_new_versions, LakeRef(self.connection), fired)
            except AdloomError as error:
                self.log.warning("the gold tables cannot be read: %s", error)
                new = {}
            if new:
                fired |= new
                yield TriggerEvent({"versions": new})
            await asyncio.sleep(self.pause_s if new else self.poll_s)


def _new_versions(lake: LakeRef, fired: Mapping[str, int]) -> dict[str, int]:
    return new_versions(connect(lake).lake, fired)


def new_versions(lake: Lake, fired: Mapping[str, int]) -> dict[str, int]:
    """By name, the newest version of each gold table that is newer than what has ``fired`` and what was validated."""
    validated = read_validated(lake)
    newest = {table.name: lake.newest_commit(table.path) for table in (ATTRIBUTIONS, SESSIONS)}
    return {
        name: version
        for name, version in newest.items()
        if version is not None and version > max(validated.get(name, -1), fired.get(name, -1))
    }


def read_validated(lake: Lake) -> dict[str, int]:
    """By table, the last version that has passed its validation."""
    try:
        versions = json.loads(lake.files.read(VALIDATED) or b"{}")
    except ValueError:
        return {}  # the validation reports the damage
    return versions if isinstance(versions, dict) else {}
