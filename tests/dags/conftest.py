"""Airflow with a home of its own, which is removed after the tests."""

import os
import tempfile

_HOME = tempfile.TemporaryDirectory(prefix="adloom-airflow-")
# Airflow reads it when it is first imported, and creates the folder.
os.environ["AIRFLOW_HOME"] = _HOME.name
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "false"
# Otherwise py4j logs its shutdown to a stream that pytest has closed.
os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "WARNING"
