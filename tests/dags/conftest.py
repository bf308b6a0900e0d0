"""Airflow with a home of its own, which goes when the tests are over."""

import os
import tempfile

_HOME = tempfile.TemporaryDirectory(prefix="adloom-airflow-")
# Airflow reads it when it is first imported, and makes the folder.
os.environ["AIRFLOW_HOME"] = _HOME.name
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "false"
# Else it has py4j tell of its end, into a stream that pytest has closed.
os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "WARNING"
