"""The DAGs of adloom for Airflow: of each lake that ADLOOM_LAKES names, or of the only one.

They are declared in ``ad_dags/dags/``, one per module. A DAG file of your own can call ``adloom_dags`` instead,
with schedules, owner or pool by lake.
"""

from ad_dags.connection.lakes import lakes_here
from ad_dags.factory import adloom_dags

# Airflow only parses files that contain the words "airflow" and "dag".
for lake in lakes_here():
    globals().update(adloom_dags(lake.connection, lake.prefix))
