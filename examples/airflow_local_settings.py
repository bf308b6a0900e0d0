"""A cluster policy of Airflow: tasks of adloom that start Spark run on workers of their own.

Put it where Airflow looks for the module `airflow_local_settings`, such as `$AIRFLOW_HOME/config`, for the DAG
processor. Celery uses the queue, which some workers listen to: `airflow celery worker --queues spark`. Kubernetes uses
the template of the pod, a file that the scheduler reads. Each ignores what is for the other.
"""

import os
from typing import Any

__all__ = ["task_policy"]
_POOL = os.environ.get("ADLOOM_POOL", "adloom")
_QUEUE = "spark"
_TEMPLATE = "/opt/airflow/pods/adloom-spark.yaml"


def task_policy(task: Any) -> None:
    """Airflow calls this for each task of each DAG file that it reads."""
    if task.pool == _POOL:
        task.queue = _QUEUE
        task.executor_config = {"pod_template_file": _TEMPLATE}
