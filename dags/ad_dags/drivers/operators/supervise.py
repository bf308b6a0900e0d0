"""The task that stands for a driver."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from ad_dags.clock import utc_now
from ad_dags.connection.lake_connection import connect
from ad_dags.connection.lakes import LakeRef
from ad_dags.drivers.supervision.rules import Action, Limits
from ad_dags.drivers.triggers.supervise import SuperviseDriverTrigger
from spark_jobs.streams.desired_state import RunState, read_desired, set_desired

if TYPE_CHECKING:
    from airflow.sdk import Context


class SuperviseDriverOperator(BaseOperator):
    """Keeps the driver of ``job`` of ``lake`` running for as long as the job is wanted; it waits in the triggerer.

    The task succeeds when the job was stopped on purpose, and fails when restarts do not help. Marking it failed or
    successful, or clearing it, stops the driver.

    Whoever triggers its DAG wants the job. But if the job was stopped or has failed since the run was triggered, the
    run was queued for a while, and the later word counts. A task does not learn when it was cleared: whoever clears one
    wants the job if the mark of a task has stopped it or if it has failed, and not if it was stopped otherwise.
    """

    def __init__(
        self, *, job: str, lake: LakeRef, limits: Limits | None = None, poll_s: float = 10.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.job, self.lake, self.poll_s = job, lake, poll_s
        self.limits = limits or Limits()

    def execute(self, context: "Context") -> str:
        """Records that the job is wanted, and defers to the trigger; ends at once if a later word says otherwise."""
        lake = connect(self.lake).lake
        wanted, is_cleared = read_desired(lake, self.job), context["ti"].try_number > 1  # it has no retries
        is_off = wanted is not None and wanted.state is not RunState.RUNNING and not wanted.is_paused
        may_clear = wanted is not None and (wanted.is_marked or wanted.state is RunState.FAILED)
        if wanted and is_off and not (is_cleared and may_clear) and wanted.since > context["dag_run"].run_after:
            since = f"{wanted.since:%Y-%m-%d %H:%M:%S} UTC"
            return f"it is {wanted.state} since {since}: {wanted.why}; trigger {self.dag_id} to start it"
        if wanted is None or is_off:
            set_desired(lake, self.job, RunState.RUNNING, f"supervised by {self.dag_id}", utc_now())
        trigger = SuperviseDriverTrigger(self.job, self.limits.numbers(), self.poll_s, self.lake.connection)
        return self.defer(trigger=trigger, method_name="watch_is_over")

    def watch_is_over(self, context: "Context", event: dict[str, str]) -> str:  # noqa: ARG002
        """Succeeds or fails as the event of the trigger says."""
        if event["action"] == Action.FAIL:
            raise AirflowFailException(f"job {self.job}: {event['why']}. It stays as it is until this DAG is triggered")
        return event["why"]
