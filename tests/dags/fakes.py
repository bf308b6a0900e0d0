"""A launcher that records what it is asked to do, and a command that tasks run instead of adloom."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.launchers import Driver, DriverState, LauncherError

LAKE = LakeRef()
"""The lake that the environment describes."""


def fake_command(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Makes tasks run ``script`` of a shell, written to ``folder``, as the command adloom."""
    program = folder / "adloom"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("ADLOOM_COMMAND", str(program))


@dataclass
class RecordingLauncher:
    """A launcher whose only driver starts and stops at once."""

    state: DriverState = DriverState.STOPPED
    calls: list[str] = field(default_factory=list)
    process_id: int = 1
    is_away: bool = False
    is_broken: bool = False

    def start(self, job: str) -> None:
        """The driver runs, unless it is broken."""
        self.calls.append(f"start {job}")
        self.state = DriverState.FAILED if self.is_broken else DriverState.RUNNING

    def stop(self, job: str) -> None:
        """The driver has stopped."""
        self.calls.append(f"stop {job}")
        self.state = DriverState.STOPPED

    def inspect(self, job: str) -> Driver:
        """The driver, unless the launcher is away."""
        if self.is_away:
            raise LauncherError("supervisord at nowhere: it does not answer")
        return Driver(job, self.state, self.process_id if self.state.is_alive else None, None, "the reason")

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        """Two lines."""
        return f"{job}: {last_bytes}\nthe reason"
