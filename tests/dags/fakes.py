"""A launcher that only notes what it is asked."""

from dataclasses import dataclass, field

from ad_dags.launchers import Driver, DriverState, LauncherError


@dataclass
class NotingLauncher:
    """One driver, which does at once what is asked."""

    state: DriverState = DriverState.STOPPED
    asked: list[str] = field(default_factory=list)
    process_id: int = 1
    is_away: bool = False
    is_broken: bool = False

    def start(self, job: str) -> None:
        """Notes it; the driver runs, unless it is broken."""
        self.asked.append(f"start {job}")
        self.state = DriverState.GIVEN_UP if self.is_broken else DriverState.RUNNING

    def drain(self, job: str) -> None:
        """Notes it; the driver has stopped."""
        self.asked.append(f"drain {job}")
        self.state = DriverState.STOPPED

    def look(self, job: str) -> Driver:
        """The driver, unless the launcher is away."""
        if self.is_away:
            raise LauncherError("supervisord at nowhere: it does not answer")
        return Driver(job, self.state, self.process_id if self.state.is_alive else None, None, "it said why")

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        """Two lines."""
        return f"{job}: {last_bytes}\nit said why"
