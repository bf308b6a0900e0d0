"""Watching over a driver, in the triggerer."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from ad_dags.place import find_place
from ad_dags.tasks.supervise import drain, look_and_act, utc_now
from ad_dags.watching import Action, Limits, Memory
from spark_jobs.contracts.errors import AdloomError


class SuperviseDriverTrigger(BaseTrigger):
    """Looks at the driver of ``job`` every ``poll_s`` seconds until it is not wanted any more, or cannot be helped.

    What runs is the driver's own process: a triggerer that dies stops nothing, and the one after it goes on to look.
    When the task is marked failed or succeeded, or cleared, the driver is drained.
    """

    def __init__(self, job: str, limits: dict[str, float], poll_s: float) -> None:
        """Takes the limits as numbers (seconds, and the number of restarts): a trigger travels as JSON."""
        super().__init__()
        self.job, self.limits, self.poll_s = job, limits, poll_s
        self._looked_at = utc_now()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What Airflow makes it anew from."""
        kwargs = {"job": self.job, "limits": self.limits, "poll_s": self.poll_s}
        return (f"{type(self).__module__}.{type(self).__qualname__}", kwargs)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ends with one event: ``action`` (``finish`` or ``fail``) and ``why``."""
        limits, memory = Limits.of(self.limits), Memory()
        place = await asyncio.to_thread(find_place)
        look = partial(look_and_act, place.lake, place.launcher, self.job, name="supervise")
        while True:
            self._looked_at = utc_now()
            try:
                found = await asyncio.to_thread(look, memory, limits, self._looked_at)
            except AdloomError as error:
                # The lake may be away for a while; the driver waits for it too.
                self.log.warning("%s: %s", self.job, error)
            else:
                memory = found.memory
                if found.action in (Action.FINISH, Action.FAIL):
                    yield TriggerEvent({"action": found.action.value, "why": found.why})
                    return
            await asyncio.sleep(self.poll_s)

    async def on_kill(self) -> None:
        """Drains the driver: somebody ended the task on purpose.

        Where the task was cleared its next try has said meanwhile that the job is wanted; then that stands, and the
        next try starts the driver when it is drained.
        """
        # In one thread, which goes on to its end: Airflow cancels this when it takes longer than a moment.
        await asyncio.to_thread(self._drain)

    def _drain(self) -> None:
        place = find_place()
        why = "its task was marked in Airflow"
        drain(place.lake, place.launcher, self.job, why, utc_now(), unless_after=self._looked_at)
