"""Keeps the job `attribute` running.

Joins clicks to impressions, and groups each user's events into sessions, from silver.
"""

from airflow.sdk import DAG

from ad_dags.supervision.dag import supervising_dag

dag: DAG = supervising_dag("attribute", __doc__)
