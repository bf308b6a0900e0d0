"""The supervising DAGs, which differ in nothing but the job."""

from airflow.sdk import DAG

from ad_dags.defaults import adloom_dag
from ad_dags.operators.supervise import SuperviseDriverOperator
from ad_dags.supervision.naming import supervising_dag_id

_HOW_TO = """
| to | do |
|---|---|
| stop the job | mark the task **failed** or **success**: the driver finishes its running batches, then stops |
| start it again | trigger this DAG, or clear its task |

A run lasts as long as the job is wanted. A driver that died is restarted, with a longer pause each time; one that makes
no progress is stopped and restarted. If restarts do not help, the run fails with the reason. If the triggerer or the
scheduler dies, the driver keeps running.
"""


def supervising_dag(job: str, page: str | None) -> DAG:
    """The DAG ``supervise_<job>``. ``page`` opens its page in the UI; its first line is the description."""
    with adloom_dag(
        supervising_dag_id(job), f"{page}{_HOW_TO}", tag="streams", retries=0, execution_timeout=None
    ) as dag:
        SuperviseDriverOperator(task_id="supervise", job=job)
    return dag
