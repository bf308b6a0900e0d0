"""Keeps the job `measure` running.

Counts events per campaign and window, averages recent values, and tracks which users are online, from silver.
"""

from airflow.sdk import DAG

from ad_dags.supervision.dag import supervising_dag

dag: DAG = supervising_dag("measure", __doc__)
