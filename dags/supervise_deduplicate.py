"""Keeps the job `deduplicate` running.

Judges what comes in into bronze, and carries each event once into silver.
"""

from airflow.sdk import DAG

from ad_dags.supervising import supervising_dag

dag: DAG = supervising_dag("deduplicate", __doc__)
