"""The long-running jobs as processes of their own."""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.lake.layout import Lake
from spark_jobs.streams.reports import QueryReport, read_report
from tests.support.drivers import ADLOOM, CRASHING
from tests.support.servers import wait_until

LONGEST_S = 300


@dataclass
class Job:
    """``adloom job`` at work; ``log`` is its log file."""

    name: str
    lake: Lake
    log: Path
    process: subprocess.Popen[bytes]

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to its Python process alone."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL to its Python and Java at once, if it runs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def wait(self, seconds: float = LONGEST_S) -> int:
        """Waits for its end and gives its exit code."""
        return self.process.wait(seconds)

    def stop(self) -> None:
        """SIGTERM, and it must end well."""
        self.signal(signal.SIGTERM)
        code = self.wait()
        assert code == 0, self.output

    @property
    def output(self) -> str:
        """The content of its log so far."""
        return self.log.read_text(encoding="utf-8")

    def report(self, query: str) -> QueryReport | None:
        """The query's latest report, if there is one."""
        return read_report(self.lake, query)

    def wait_for_log(self, text: str, seconds: float = LONGEST_S) -> None:
        """Returns when the log holds ``text``."""

        def is_logged() -> bool:
            assert self.process.poll() is None or text in self.output, self.output
            return text in self.output

        wait_until(is_logged, seconds, f"{self.name} did not log {text!r}")


def start_job(name: str, lake: Lake, log: Path, *arguments: str, environment: Mapping[str, str]) -> Job:
    """Starts ``adloom job NAME`` in a process group of its own; doomed if the environment holds CRASH_AFTER."""
    command = [*(CRASHING if "CRASH_AFTER" in environment else ADLOOM), "job", name, "--lake", lake.root, *arguments]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, start_new_session=True, env={**os.environ, **environment}
        )
    return Job(name, lake, log, process)
