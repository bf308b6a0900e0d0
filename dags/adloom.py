"""Gives Airflow the DAGs of adloom: once for each lake that ADLOOM_LAKES names, or for the only one.

They are declared in ``ad_dags/declared/``, one per module. A DAG file of your own can call ``adloom_dags`` instead,
with schedules, owner or pool by lake.
"""

from ad_dags.factory import adloom_dags
from ad_dags.lakes import lakes_here

# Airflow parses files with the words "airflow" and "dag" only.
for lake in lakes_here():
    globals().update(adloom_dags(lake.connection, lake.prefix))
