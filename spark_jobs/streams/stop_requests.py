"""Requests to stop that are made in the lake, for drivers that no signal reaches."""

import logging
import time

from spark_jobs.errors import AdloomError
from spark_jobs.lake.layout import Lake
from spark_jobs.streams.desired_state import stop_key
from spark_jobs.streams.stop_signals import StopRequest

_LOOK_S = 5.0
_log = logging.getLogger(__name__)


class StopRequests:
    """The requests made to one driver; older ones differ in their content, so no clocks are compared."""

    def __init__(self, lake: Lake, job: str, *, is_cleared: bool = False, look_s: float = _LOOK_S) -> None:
        """Remembers the request that is there, which was made to an earlier driver.

        To be called before the driver takes its lock: whoever sees the lock held may ask it to stop at once.

        Args:
            lake: where the requests are made.
            job: of the driver.
            is_cleared: whether whoever started this driver removed earlier requests, as ``adloom submit`` does: one
                that is there now was made while the cluster was starting the driver.
            look_s: how often to look, in seconds.

        Raises:
            LakeError: the lake does not answer.
        """
        self._lake, self._job, self._look_s = lake, job, look_s
        self._earlier = None if is_cleared else self._read()
        self._looked_at = time.monotonic()

    def heed(self, stop: StopRequest) -> None:
        """Passes on a request from the lake; checks only every few seconds."""
        if time.monotonic() - self._looked_at < self._look_s:
            return
        self._looked_at = time.monotonic()
        try:
            found = self._read()
        except (AdloomError, OSError) as error:
            _log.warning("%s: cannot read from the lake whether to stop: %s", self._job, error)
            return
        if found not in (None, self._earlier):
            _log.info("%s: the lake asks it to stop", self._job)
            stop.ask()

    def _read(self) -> bytes | None:
        return self._lake.files.read(stop_key(self._job))
