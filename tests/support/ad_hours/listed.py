"""Run in a copy of adloom to which ``ad_hours`` was added: prints where the rest of adloom knows it, without Spark."""

import json
import sys
from datetime import timedelta
from tempfile import TemporaryDirectory

import typer.main

from spark_jobs.cli import app
from spark_jobs.config.sections import AttributeSettings
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.jobs import MEASURE_JOB
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.manifests import read_manifest
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.queries.registry import TABLES, find_query, queries_of
from spark_jobs.streams.checkpoints import claim, preflight

settings, query = Settings(), find_query("ad_hours")
longer = settings.model_copy(update={"attribute": AttributeSettings(impression_watermark=timedelta(hours=3))})
commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
reset = commands["checkpoints"].commands["reset"]
with TemporaryDirectory() as folder:
    lake = open_lake(folder)
    claim(lake, settings, [query.name], source=FILES)
    lake.files.write(f"{checkpoint_key(query.name, 1)}/offsets/0", b"v1")  # as after the first batch
    manifest = read_manifest(lake, query.name, 1)
    found = {
        "queries of measure": [one.name for one in queries_of(MEASURE_JOB)],
        "tables": [table.name for table in TABLES],
        "manifest": manifest and manifest.query,
        "preflight": [(one.setting, one.verdict) for one in preflight(lake, longer, [query.name], source=FILES)],
        "closes after": query.closes_after(settings).total_seconds(),
        "help": [reset.params[0].help, commands["show"].params[0].help],
    }
json.dump(found, sys.stdout)
