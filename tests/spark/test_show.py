"""`adloom show`: times in UTC wherever the machine stands, and text as it is."""

import os
import subprocess
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.contracts.tables import SESSIONS
from spark_jobs.runtime.lakes import open_lake
from tests.expectations.good_rows import append, good_rows
from tests.support.drivers import ADLOOM


def test_times_are_shown_in_utc_and_brackets_stay(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    session = {**good_rows("sessions")[0], "user_id": "[/x] :cat: u1"}
    append(spark, lake, SESSIONS, [session])
    shown = subprocess.run(
        [*ADLOOM, "show", "sessions", "--lake", str(lake.path)],
        env={**os.environ, "TZ": "Asia/Tokyo", "COLUMNS": "600"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert f"{session['session_start']:%Y-%m-%dT%H:%M:%S}.000000Z" in shown.stdout
    assert f'"event_time":"{session["events"][0]["event_time"]:%Y-%m-%dT%H:%M:%S}' in shown.stdout
    assert "[/x] :cat: u1" in shown.stdout
