"""Keeps the job `deduplicate` running.

Writes every record to bronze with a verdict, and each valid event once to silver.
"""

from airflow.sdk import DAG

from ad_dags.supervision.dag import supervising_dag

dag: DAG = supervising_dag("deduplicate", __doc__)
