"""Keeps the job `measure` running.

Counts campaigns in windows, averages values, and tells which users are there, from silver.
"""

from airflow.sdk import DAG

from ad_dags.supervising import supervising_dag

dag: DAG = supervising_dag("measure", __doc__)
