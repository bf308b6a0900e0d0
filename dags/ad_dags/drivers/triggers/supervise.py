"""The watch over a driver, in the triggerer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from ad_dags.clock import utc_now
from ad_dags.connection.lake_connection import KnownConnection, connect
from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.job_control import stop_marked
from ad_dags.drivers.supervision.rules import Action, Decision, Limits
from ad_dags.drivers.supervision.watch import supervise_once
from spark_jobs.errors import AdloomError


class SuperviseDriverTrigger(BaseTrigger):
    """Looks at the driver of ``job`` every ``poll_s`` seconds, until it is no longer wanted or restarts do not help.

    The driver is a process of its own: if the triggerer dies the driver keeps running, and the next triggerer resumes
    the watch. Marking the task failed or successful, or clearing it, stops the driver.
    """

    def __init__(self, job: str, limits: dict[str, float], poll_s: float, connection: str = "") -> None:
        """``limits`` are those of :meth:`Limits.numbers`, ``connection`` is a lake's: a trigger is stored as JSON."""
        super().__init__()
        self.job, self.limits, self.poll_s, self.connection = job, limits, poll_s, connection
        self._looked_at = utc_now()
        self._known = KnownConnection(lambda: connect(LakeRef(connection)))

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and arguments from which Airflow recreates the trigger."""
        kwargs = {"job": self.job, "limits": self.limits, "poll_s": self.poll_s, "connection": self.connection}
        return (f"{type(self).__module__}.{type(self).__qualname__}", kwargs)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ends with one event: ``action`` (``finish`` or ``fail``) and ``why``."""
        limits = Limits.of(self.limits)
        await asyncio.to_thread(self._known.now)  # a missing setting fails the task, unlike a lake that does not answer
        while True:
            self._looked_at = utc_now()
            try:
                decision = await asyncio.to_thread(self._look, limits)
            except AdloomError as error:
                # The lake may be unavailable for a while; the driver waits for it too.
                self.log.warning("%s: %s", self.job, error)
            else:
                if decision.action in (Action.FINISH, Action.FAIL):
                    yield TriggerEvent({"action": decision.action.value, "why": decision.why})
                    return
            await asyncio.sleep(self.poll_s)

    async def on_kill(self) -> None:
        """Stops the driver: somebody ended the task on purpose.

        If the task was cleared, its next try may already have recorded that the job is wanted. That record stands, and
        the next try starts the driver once the old one has stopped.
        """
        # In one thread, which runs to its end even though Airflow cancels this coroutine after a moment.
        await asyncio.to_thread(self._stop)

    def _look(self, limits: Limits) -> Decision:
        connection = self._known.now()
        return supervise_once(connection.lake, connection.launcher, self.job, limits, self._looked_at, name="supervise")

    def _stop(self) -> None:
        connection = self._known.now()
        stop_marked(connection.lake, connection.launcher, self.job, utc_now(), self._looked_at)
