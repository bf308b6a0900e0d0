"""Judges the records in quarantine again, with the settings of the running release; those that fit flow on, once.

Trigger it after a wrong mapping was corrected and deployed. With **dry run**, which is the default, it only lists what
would fit. The task's log has a table, by source and verdict: how many records were looked at, which fit now, and what
the others break now.

Records that fit are added to bronze again, with the verdict `ok`, in one commit. The running job `deduplicate` takes
them from there; it need not be stopped. The others stay in quarantine. A record is requeued once, however often this
runs, so a run that failed can be repeated. Events that lie behind the watermark by now are late, and the ledger counts
them.

A user who may trigger this DAG changes what silver and gold contain: give that permission to those who may deploy.
"""

from airflow.sdk import DAG, Param

from ad_dags.commands import run_adloom
from ad_dags.connection.lake_connection import connect_started
from ad_dags.connection.lakes import LakeRef
from ad_dags.defaults import DagDefaults
from ad_dags.forms import Form, form_task, options, time_field
from spark_jobs.ingest.requeue_model import REJECTIONS


def declare(own: DagDefaults) -> DAG:
    """The DAG, for the lake of ``own``."""
    with own.dag(
        "requeue_quarantine",
        __doc__,
        tag="maintenance",
        params={
            "verdicts": Param(
                [],
                type="array",
                title="Verdicts",
                description="Only records that got one of these. None: all.",
                items={"type": "string", "enum": list(REJECTIONS)},
                examples=list(REJECTIONS),
            ),
            "since": time_field("Since", "Only records that reached bronze then or later.", is_optional=True),
            "until": time_field("Until", "Only records that reached bronze before.", is_optional=True),
            "source": Param(
                None,
                type=["null", "string"],
                pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$",
                title="Source",
                description="Only records of this source of the settings. Empty: all.",
            ),
            "dry_run": Param(True, type="boolean", title="Dry run", description="Only list what would be requeued."),
        },
    ) as dag:
        form_task(requeue_quarantine, pool=own.pool)(own.lake)
    return dag


def requeue_quarantine(lake: LakeRef, params: Form) -> str:
    """Requeues the records that ``params`` select and that fit now; if ``dry_run``, only lists them."""
    chosen = [f"--verdict={verdict}" for verdict in params["verdicts"]]
    chosen += options(params, "since", "until", "source", "dry_run")
    _, output = run_adloom(connect_started(lake), ["requeue"], chosen, changes_lake=True)
    return output
