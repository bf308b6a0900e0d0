"""The names of adloom's DAGs, found without loading Airflow."""

from pathlib import Path

from spark_jobs.queries.jobs import JOB_NAMES

_DECLARED = Path(__file__).parents[2] / "dags" / "ad_dags" / "dags"
DAG_NAMES = sorted([*(file.stem for file in _DECLARED.glob("[a-z]*.py")), *(f"supervise_{job}" for job in JOB_NAMES)])
"""Without prefix."""
