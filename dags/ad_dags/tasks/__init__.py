"""What the tasks of the DAGs do; Airflow is not needed to run it."""
