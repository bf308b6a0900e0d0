"""The supervising DAGs, which differ in nothing but the job."""

from airflow.sdk import DAG

from ad_dags.defaults import DagDefaults
from ad_dags.drivers.operators.supervise import SuperviseDriverOperator
from ad_dags.drivers.supervision import supervising_dag_id
from spark_jobs.queries.jobs import Job

_PAGE = """Keeps the job `{name}` running.

{summary}

| to | do |
|---|---|
| stop the job | mark the task **failed** or **success**: the driver finishes its running batches, then stops |
| start it again | trigger this DAG, or clear its task if it was marked or has failed |

A run lasts as long as the job is wanted. A driver that died is restarted, with a longer pause each time; one that makes
no progress ends by itself, with the reason. If restarts do not help, the run fails, and the job stays as it is until
this DAG is triggered. If the triggerer or the scheduler dies, the driver keeps running.
"""


def supervising_dag(own: DagDefaults, job: Job) -> DAG:
    """The DAG ``supervise_<job>``, for the lake of ``own``."""
    page = _PAGE.format(name=job.name, summary=job.summary)
    with own.dag(supervising_dag_id(job.name), page, tag="streams", retries=0, execution_timeout=None) as dag:
        SuperviseDriverOperator(task_id="supervise", job=job.name, lake=own.lake, limits=own.limits)
    return dag
