"""The pages of adloom inside Airflow's UI: Streams and Data quality."""
