"""Jobs kept alive, as systemd or Airflow would: one that ends by itself is started again."""

import threading
from collections.abc import Callable

from tests.stack.jobs import Job

_LOOK_S = 0.5
_MOST_STARTS = 60


class Supervisor:
    """Keeps one job alive from its making to :meth:`stop`."""

    def __init__(self, start: Callable[[], Job]) -> None:
        self._start = start
        self._ended = threading.Event()
        self.jobs = [start()]
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def job(self) -> Job:
        """The one that runs now."""
        return self.jobs[-1]

    @property
    def restarts(self) -> int:
        """How often it ended by itself."""
        return len(self.jobs) - 1

    def stop(self) -> None:
        """Stops the job, which must end well."""
        self._ended.set()
        self._thread.join()
        if self.job.process.poll() is None:
            self.job.stop()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_S) and len(self.jobs) < _MOST_STARTS:
            if self.job.process.poll() is not None:
                self.jobs.append(self._start())
