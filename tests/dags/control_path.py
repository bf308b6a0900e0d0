"""A model of the control path: the real rules under a simulated clock, with random faults and people.

Real are what supervision decides, records and asks of the launcher, and when a run wants the job. Simulated are the
driver, its launcher, the store (a dictionary), and Airflow: a queue of runs of `supervise_<job>`, a triggerer that
looks every 10 s, and `reconcile_drivers` every 3 min. Time runs in steps of 10 s for a while after every event, else
faster.
"""

import logging
import random
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags import reconcile_drivers as reconcile
from ad_dags.drivers import job_control
from ad_dags.drivers.launchers import Driver, DriverState, LauncherError
from ad_dags.drivers.operators import supervise as operators
from ad_dags.drivers.operators.supervise import SuperviseDriverOperator
from ad_dags.drivers.supervision import watch as watching
from ad_dags.drivers.supervision.rules import Action, Limits
from spark_jobs.config.settings import Settings
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.records import write_record
from spark_jobs.streams.desired_state import RunState, read_desired, set_desired
from spark_jobs.streams.reports import DriverReport, driver_report_key
from tests.dags.fakes import LAKE
from tests.support.memory_store import MemoryStore

JOB = "attribute"
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_LOOK, _RECONCILE = timedelta(seconds=10), timedelta(minutes=3)
_TO_STOP, _KILLED_AFTER, _STALL_AFTER = timedelta(minutes=2), timedelta(seconds=330), timedelta(minutes=10)
_TOLD = timedelta(seconds=14)
"""The greatest age of a report of a driver that is alive."""
_SETTLED = timedelta(minutes=40)
"""After the last event, by when a job that is wanted and can run must run; without events, time runs faster."""


_STEPS = (
    (timedelta(minutes=10), _LOOK),
    (_SETTLED + timedelta(minutes=6), timedelta(minutes=1)),
    (timedelta.max, timedelta(minutes=27)),
)
"""By how long ago the last event was, how far time goes at once."""


_ENOUGH = 3
"""Violations, at which a world ends."""
_BY_PEOPLE = ("trigger", "deploy", "stop", "mark", "clear", "pause")
_BY_NATURE = ("break", "mend", "mend", "freeze", "reboot", "leave", "leave")
_SILENT = logging.getLogger("a model")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate, _SILENT.disabled = False, True


@dataclass
class _Process:
    """A driver. ``dies_at``: when it fails; None: never. ``is_frozen``: it neither reports nor heeds a signal."""

    number: int
    started_at: datetime
    dies_at: datetime | None
    completes_at: datetime | None
    is_frozen: bool
    asked_at: datetime | None = None


@dataclass
class _Run:
    """A run of `supervise_<job>`. ``is_by_person``: somebody wants it, and may want it after a failure."""

    run_after: datetime
    state: str = "queued"
    tries: int = 1
    is_by_person: bool = False


@dataclass
class World:
    """A lake, a machine, an Airflow and a person over ``days``; :meth:`live` returns what was violated."""

    seed: int
    monkeypatch: pytest.MonkeyPatch
    days: int = 10
    limits: Limits = field(default_factory=Limits)
    violations: list[str] = field(default_factory=list)
    starts: int = 0
    acts: list[str] = field(default_factory=list)

    def _ask_store(self) -> None:
        if self.is_store_away:
            raise LakeError("the store does not answer")

    def __post_init__(self) -> None:
        self.chance, self.now = random.Random(self.seed), _BEGIN
        self.store, self.runs, self.is_store_away = MemoryStore(), list[_Run](), False
        self.store.fault = self._ask_store
        self.lake = Lake("memory://lake", self.store)
        self.connection = LakeConnection("memory://lake", None, Settings(), self.lake, self)
        self.process: _Process | None = None
        self.ended = DriverState.STOPPED
        self.kind = "good"
        """How drivers are: good, frozen, or one that dies early, late or in a stall."""
        self.away: dict[str, datetime] = {}
        """By part that is away, until when."""
        self.is_wanted = self.is_unheard = False
        self.paused_until: datetime | None = None
        self.starts_in_a_row = self.failed_runs = 0
        self.event_at, self._step = _BEGIN, _LOOK
        for module in (reconcile, operators):
            self.monkeypatch.setattr(module, "connect", lambda *_: self.connection)
            self.monkeypatch.setattr(module, "utc_now", lambda: self.now)
        for module in (reconcile, watching):
            self.monkeypatch.setattr(module, "_log", _SILENT)
        own = {"ti": SimpleNamespace(get_dr_count=self._count)}
        self.monkeypatch.setattr(reconcile, "get_current_context", lambda: own)

    # The launcher.

    def start(self, job: str) -> None:
        self._launcher()
        if self.process:
            return
        self.starts += 1
        self.starts_in_a_row += 1
        if not self.is_wanted:
            self._violate(f"{job} was started although it was stopped")
        if self.starts_in_a_row > 2 + self.limits.most_restarts and self.kind != "good":
            self._violate(f"{job} was started {self.starts_in_a_row} times in a row, in vain")
        self._spawn()

    def stop(self, job: str) -> None:
        self._launcher()
        if not self.process or self.process.asked_at:
            return
        is_well = self.kind == "good" and not self.process.is_frozen
        said = read_desired(self.lake, JOB)
        # A stop that waits for its driver is carried out, though a later run that wants the job is queued behind it.
        is_said = said is not None and said.runs_at(self.now)
        if self.is_wanted and is_said and not self.paused_until and is_well and not self._was_away("store"):
            self._violate(f"{job} was stopped although it is well")
        self.process.asked_at = self.now

    def inspect(self, job: str) -> Driver:
        self._launcher()
        self._step_process()
        if self.process is None:
            return Driver(job, self.ended, None, None, "the reason")
        state = DriverState.STOPPING if self.process.asked_at else DriverState.RUNNING
        return Driver(job, state, self.process.number, self.process.started_at, "a process")

    def log(self, job: str, last_bytes: int = 20_000) -> str:
        raise NotImplementedError

    def _launcher(self) -> None:
        if self._is_away("launcher"):
            raise LauncherError("supervisord does not answer")

    # The driver.

    def _spawn(self) -> None:
        lives = {
            "early": timedelta(seconds=20),
            "soon": timedelta(minutes=5),
            "late": timedelta(hours=1),
            "stall": _STALL_AFTER + _LOOK,
        }
        dies_at = self.now + lives[self.kind] if self.kind in lives else None
        # A long batch: nothing is completed for hours.
        longest = {"good": 300, "soon": 1}.get(self.kind)
        completes_at = self.now + timedelta(minutes=self.chance.choice((1, 1, longest))) if longest else None
        self.process = _Process(self.starts, self.now, dies_at, completes_at, self.kind == "frozen")

    def _step_process(self) -> None:
        own = self.process
        if own is None:
            return
        patience = _KILLED_AFTER if own.is_frozen else _TO_STOP
        if own.asked_at and self.now - own.asked_at >= patience:
            self.process, self.ended = None, DriverState.STOPPED
        elif own.dies_at and self.now >= own.dies_at:
            self.process, self.ended = None, DriverState.FAILED

    def _report(self) -> None:
        own = self.process
        if own is None or own.is_frozen or self.is_store_away:
            return
        has_completed = own.completes_at is not None and self.now >= own.completes_at
        if has_completed and self.now - own.started_at >= Limits().recovered_after:
            self.starts_in_a_row = 1
        report = DriverReport(
            process_id=own.number,
            version="1",
            started_at=own.started_at,
            updated_at=max(self.now - _TOLD, own.started_at),
            progress_at=self.now,
            has_completed=has_completed,
            is_idle=False,
        )
        write_record(self.lake, driver_report_key(JOB), report)

    # Airflow.

    def _count(self, _dag_id: str, states: list[str]) -> int:
        return sum(run.state in states for run in self.runs)

    def _airflow(self) -> None:
        if not self._is_away("scheduler"):
            if not any(run.state == "running" for run in self.runs):
                queued = [run for run in self.runs if run.state == "queued"]
                if queued:
                    self._execute(queued[0])
            if (self.now - _BEGIN) % _RECONCILE < self._step:
                self._try(self._reconcile)
        if not self._is_away("triggerer") and any(run.state == "running" for run in self.runs):
            self._try(self._look)
        self.runs = [run for run in self.runs if run.state in ("queued", "running")]

    def _execute(self, run: _Run) -> None:
        operator = SuperviseDriverOperator(lake=LAKE, task_id="supervise", job=JOB, limits=self.limits)
        context: Any = {
            "ti": SimpleNamespace(try_number=run.tries),
            "dag_run": SimpleNamespace(run_after=run.run_after),
        }
        try:
            operator.execute(context)
            run.state = "success"
        except TaskDeferred:
            run.state = "running"
            if run.is_by_person:
                self.is_unheard = False
                # It may have been queued behind one that failed meanwhile: what fails now is another attempt.
                self.starts_in_a_row = self.failed_runs = 0
        except LakeError:
            # Without the store nobody learns that the job is wanted: whoever triggered the run sees it fail.
            run.state, self.is_unheard = "failed", run.is_by_person

    def _reconcile(self) -> None:
        for _dag in reconcile.find_dags_to_trigger(LAKE, self.limits.numbers()):
            self.runs.append(_Run(self.now))

    def _look(self) -> None:
        found = watching.supervise_once(self.lake, self, JOB, self.limits, self.now, name="supervise")
        if found.action not in (Action.FINISH, Action.FAIL):
            return
        (run,) = [run for run in self.runs if run.state == "running"]
        operator = SuperviseDriverOperator(lake=LAKE, task_id="supervise", job=JOB, limits=self.limits)
        try:
            operator.watch_is_over({}, {"action": found.action.value, "why": found.why})
            run.state = "success"
        except AirflowFailException:
            run.state = "failed"
            self.failed_runs += 1
            if self.failed_runs > 1:
                self._violate("the same failure was reported twice")

    def _try(self, step: Any) -> None:
        with suppress(LakeError, LauncherError):  # Airflow's next round tries again
            step()

    # People and faults.

    def _want(self, paused_until: datetime | None = None) -> None:
        self.is_wanted, self.paused_until = True, paused_until
        self.starts_in_a_row = self.failed_runs = 0

    def act(self, act: str) -> None:
        """Lets a person or nature do ``act`` now: one of :data:`_BY_PEOPLE` or :data:`_BY_NATURE`."""
        self.event_at = self.now
        self.acts.append(f"{self.now - _BEGIN} {act}")
        if (
            act in _BY_NATURE or not self.is_store_away
        ):  # without the store, a person's act fails, and the person sees it
            getattr(self, f"_{act}")()

    def _trigger(self) -> None:
        self._want(self.paused_until)
        self.runs.append(_Run(self.now, is_by_person=True))

    def _deploy(self) -> None:
        if not self._is_away("launcher"):
            self._want()
            set_desired(self.lake, JOB, RunState.RUNNING, "release 2 was deployed", self.now)
            self.start(JOB)

    def _stop(self) -> None:
        self.is_wanted = False
        self._try(lambda: job_control.stop(self.lake, self, JOB, "deploy_streams, action stop", self.now))

    def _mark(self) -> _Run | None:
        """A person marks the task of the running run as failed."""
        run = next((run for run in self.runs if run.state == "running"), None)
        if run:
            self.is_wanted = False
            self._try(lambda: job_control.stop_marked(self.lake, self, JOB, self.now, self.now))
            run.state = "failed"
        return run

    def _clear(self) -> None:
        if run := self._mark():
            self._want()
            run.state, run.tries, run.is_by_person = "queued", run.tries + 1, True

    def _pause(self) -> None:
        if (wanted := read_desired(self.lake, JOB)) and wanted.runs_at(self.now):
            self.paused_until, self.starts_in_a_row = self.now + timedelta(hours=1), 0
            set_desired(self.lake, JOB, RunState.STOPPED, "maintenance", self.now, until=self.paused_until)
            self._try(lambda: self.stop(JOB))

    def _break(self) -> None:
        self.kind = self.chance.choice(("early", "soon", "late", "stall", "frozen"))
        if self.process:
            self.process.dies_at = self.now + timedelta(minutes=1)

    def _mend(self) -> None:
        self.kind = "good"
        if self.process:
            self.process.is_frozen, self.process.dies_at = False, None
            self.process.completes_at = self.now

    def _freeze(self) -> None:
        if self.process:
            self.process.is_frozen = True

    def _reboot(self) -> None:
        self.process, self.ended = None, DriverState.STOPPED

    def _leave(self) -> None:
        part = self.chance.choice(("triggerer", "scheduler", "store", "launcher"))
        self.leave(part, timedelta(minutes=self.chance.choice((1, 12, 60, 60 * 24 * 3))))

    def leave(self, part: str, duration: timedelta) -> None:
        """``part`` is away from now on: the triggerer, the scheduler, the store or the launcher."""
        self.away[part] = self.now + duration

    def _is_away(self, part: str) -> bool:
        return self.away.get(part, _BEGIN) > self.now

    def _was_away(self, part: str) -> bool:
        return self.away.get(part, _BEGIN) > self.now - self.limits.silent_after - _LOOK

    def _violate(self, what: str) -> None:
        self.violations.append(f"{self.now - _BEGIN}: {what}, after {', '.join(self.acts[-4:])}")

    def _check(self) -> None:
        is_disturbed = any(until > self.now - _SETTLED for until in self.away.values())
        if is_disturbed or self.now - self.event_at < _SETTLED or self.kind != "good":
            return
        wanted = read_desired(self.lake, JOB)
        is_failed = wanted is not None and wanted.state is RunState.FAILED
        is_due = self.is_wanted and not self.is_unheard and not self.paused_until
        if is_due and not is_failed and self.process is None:
            self._violate("it is wanted, can run and does not run")
        if self.process and self.process.is_frozen and not is_failed:
            self._violate("it hangs, and nobody has stopped it")
        if not self.is_wanted and self.process:
            self._violate("it is not wanted, and runs")

    def live(self) -> list[str]:
        """Lives through the days, with a random act now and then; returns the violations, at most a few."""
        end, next_event = self.now + timedelta(days=self.days), self.now + timedelta(hours=1)
        self.act("trigger")
        while self.now < end and len(self.violations) < _ENOUGH:
            if self.now >= next_event:
                self.act(self.chance.choice((*_BY_PEOPLE, *_BY_NATURE)))
                next_event = self.now + timedelta(seconds=self.chance.choice((30, 600, 7200, 86_400 * 2)))
            self._step_until(next_event)
        return self.violations

    def pass_time(self, duration: timedelta) -> list[str]:
        """Lives through ``duration``, in which nothing else happens; returns the violations so far."""
        end = self.now + duration
        while self.now < end and len(self.violations) < _ENOUGH:
            self._step_until(end)
        return self.violations

    def _step_until(self, end: datetime) -> None:
        """One step of everything, which ends at ``end`` at the latest."""
        self.is_store_away = self._is_away("store")
        if any(self.now - self._step < until <= self.now for until in self.away.values()):
            self.event_at = self.now
        if self.paused_until and self.now >= self.paused_until:
            self.paused_until, self.event_at = None, self.now
        self._step_process()
        self._report()
        self._airflow()
        self._check()
        quiet = self.now - self.event_at
        step = next(step for bound, step in _STEPS if quiet < bound)
        ends = [end, *(until for until in self.away.values() if until > self.now)]
        before, self.now = self.now, min(max(min(ends), self.now + _LOOK), self.now + step)
        self._step = self.now - before
