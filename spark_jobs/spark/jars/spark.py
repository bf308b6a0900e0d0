"""Where Java and Spark's own jars are: Spark ships the programs that fetch and compile."""

import importlib.util
import os
from pathlib import Path


def java() -> str:
    """The program ``java``."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def jars_of_spark() -> Path | None:
    """The folder of PySpark's jars; None if PySpark is not installed."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).with_name("jars") if spec and spec.origin else None
