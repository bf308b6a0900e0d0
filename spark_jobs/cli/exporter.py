"""``adloom exporter``: serves metrics of a lake to Prometheus."""

import os
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from spark_jobs.cli.options import ConfigOption, LakeOption
from spark_jobs.cli.terminal import terminal
from spark_jobs.config.settings import load_settings
from spark_jobs.lake.open import open_lake

app = typer.Typer()
_REFRESH_S, _REST = 60.0, 20
"""How long to wait between refreshes of gold's metrics, at least; and at least this many times as long as one takes."""


@app.command(
    epilog="Example:  adloom exporter --lake s3a://ads/lake --listen 127.0.0.1:9110   The jobs serve metrics of each "
    "query themselves: setting job.metrics.",
)
def exporter(
    location: LakeOption,
    listen: Annotated[str, typer.Option(help="Address to serve on.", metavar="HOST:PORT")] = "127.0.0.1:9110",
    config: ConfigOption = None,
) -> None:
    """Serve Prometheus metrics of a lake: which jobs should run, validation, ledger, campaigns, sessions."""
    from spark_jobs.operations.exporter.gold_metrics import GoldMetrics
    from spark_jobs.operations.exporter.lake_metrics import LakeMetrics
    from spark_jobs.streams.metrics import serve_metrics
    from spark_jobs.streams.stop_signals import stop_on_signals

    lake = open_lake(location, load_settings(config, os.environ).s3)
    gold = GoldMetrics(lake)
    with stop_on_signals() as stop, serve_metrics(listen, LakeMetrics(lake), gold, setting="--listen"):
        terminal().print(f"metrics of {lake.shown()}: http://{listen}/metrics", soft_wrap=True)
        while not stop.is_made:
            # Here and not at a scrape, which must not wait for a long log.
            began = time.monotonic()
            gold.refresh(datetime.now(UTC))
            stop.wait(max(_REFRESH_S, _REST * (time.monotonic() - began)))
