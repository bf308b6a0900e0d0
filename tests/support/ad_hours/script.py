"""Run in a copy of adloom to which ``ad_hours`` was added: ``script.py SOURCE LATER_FILES LAKE``."""

import json
import shutil
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import typer.main
from rich.console import Console

from expectations.validate import validate_lake
from spark_jobs.cli import app
from spark_jobs.cli.status import status_page
from spark_jobs.config.choices import Trigger
from spark_jobs.config.sections import AttributeSettings, IngestSettings, JobSettings
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.maintain import maintain
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.registry import QUERIES, find_query
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.spark.session import start_session
from spark_jobs.streams.bounded_run import run
from spark_jobs.streams.checkpoints import preflight
from spark_jobs.streams.reset import reset
from spark_jobs.streams.service import run_job
from spark_jobs.streams.stop_signals import StopRequest

source, later, lake = Path(sys.argv[1]), Path(sys.argv[2]), open_lake(sys.argv[3])
settings = Settings(ingest=IngestSettings(max_bytes_per_batch=1), job=JobSettings(trigger=Trigger.AVAILABLE_NOW))
spark = start_session(settings, log_file=Path(sys.argv[3]).with_suffix(".log"))
names = [query.name for query in QUERIES]

third, fourth = sorted(later.iterdir())
run(OpenLake.of(lake, settings, spark), source)
shutil.move(third, source)
run(OpenLake.of(lake, settings, spark), source, measure=False)
job = run_job(OpenLake.of(lake, settings, spark), MEASURE_JOB, StopRequest())
after_job = spark.read.format("delta").load(lake.table(find_query("ad_hours").writes)).count()
longer = settings.model_copy(update={"attribute": AttributeSettings(impression_watermark=timedelta(hours=3))})
judged = [(change.setting, change.verdict) for change in preflight(lake, longer, ["ad_hours"], source="files")]
done = reset(OpenLake.of(lake, settings, spark), "ad_hours")
shutil.move(fourth, source)
run(OpenLake.of(lake, settings, spark), source, drain=True)
validation = {
    table.table: (table.passed, len(table.failed)) for table in validate_lake(OpenLake.of(lake, settings, spark)).tables
}
cared = [
    care.table for care in maintain(OpenLake.of(lake, settings, spark), [find_query("ad_hours").writes], remove=False)
]
console = Console(width=200, record=True, file=StringIO())
console.print(status_page(lake, datetime.now(UTC)))
spark.stop()
reset_command = typer.main.get_command(app).commands["checkpoints"].commands["reset"]  # type: ignore[attr-defined]
found = {
    "queries": names,
    "job": job.name,
    "after_job": after_job,
    "preflight": judged,
    "reset": [done.version, done.open_events],
    "validation": validation["ad_hours"],
    "cared": cared,
    "status": console.export_text(),
    "help": reset_command.params[0].help,
}
Path(sys.argv[3], "found.json").write_text(json.dumps(found), encoding="utf-8")
