"""Where Spark writes its own log."""

import hashlib
import tempfile
from pathlib import Path

from spark_jobs.config.sections import JobSettings
from spark_jobs.lake.layout import Lake
from spark_jobs.places import PROGRESS


def spark_log(lake: Lake, settings: JobSettings, job: str = "") -> Path:
    """The file of Spark's log of ``job`` on ``lake``, or of a command on it; creates its folder.

    It lies in ``job.log_folder``, else in the progress folder of a local lake, else in the machine's folder for
    temporary files: object stores cannot append to a log line by line.
    """
    if settings.log_folder:
        folder = settings.log_folder
    elif lake.is_local:
        folder = lake.path / PROGRESS
    else:
        mark = hashlib.sha256(lake.root.encode()).hexdigest()[:8]
        folder = Path(tempfile.gettempdir()) / f"adloom-logs-{mark}"
    file = folder / job / "spark.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file
