"""The DAGs that stand for a driver are alike but for the job."""

from airflow.sdk import DAG

from ad_dags.defaults import adloom_dag
from ad_dags.operators.supervise import SuperviseDriverOperator
from ad_dags.tasks.supervise import dag_of

_HOW_TO = """
| to | do |
|---|---|
| stop the job | mark the task **failed** or **success**: the running batches are finished, then it stops |
| start it again | trigger this DAG, or clear its task |

A run lasts for as long as the job is wanted. A driver that died is started again, later each time; one that makes no
progress is drained and started again. When that does not help, the run fails and tells so. A triggerer or scheduler
that dies stops nothing.
"""


def supervising_dag(job: str, page: str | None) -> DAG:
    """The DAG ``supervise_<job>``; ``page`` is the first part of its page in the UI, its first line the description."""
    with adloom_dag(dag_of(job), f"{page}{_HOW_TO}", tag="streams", retries=0, execution_timeout=None) as dag:
        SuperviseDriverOperator(task_id="supervise", job=job)
    return dag
