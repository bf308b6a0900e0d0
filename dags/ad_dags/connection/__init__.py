"""The lake as an Airflow connection or the environment describes it."""
