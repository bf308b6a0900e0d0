"""How many events of generated bots the default rules mark, and how many marked events are a bot's: `make bench-bots`.

Events with labelled bots are run through the jobs and marked by the default rules. All events of a bot are labelled,
also those that no rule could know: of a bot that clicks too fast, the pages that it views as well. Labels of events
that the jobs kept are counted, each once, up to the time that the rules have reached: they judge the last hours later.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import duckdb
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.common import ADLOOM, EVENTS_PER_FILE, rows_of
from benchmarks.measure import run_measured
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import MARKS, SILVER_EVENTS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.labels import LABELS
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake


def main(
    events: Annotated[int, typer.Option(min=1000, help="Good events, those of bots included.")] = 100_000,
    bots: Annotated[float, typer.Option(min=0.001, max=1, help="Share of the events that bots make.")] = 0.05,
    conversions: Annotated[float, typer.Option(min=0, max=1, help="Share of clicks that lead to a conversion.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of the generator.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for input and lake; emptied.")] = Path("build/bench-bots"),
) -> None:
    """Compare marks by the default rules with the labels of generated bots."""
    console, source, lake = Console(), out / "source", out / "lake"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    files = max(1, events // EVENTS_PER_FILE)
    spec = GeneratorSpec(events=events, seed=seed, late=0, bots=bots, conversions=conversions, files=files)
    with console.status(f"writing {events:,} events"):
        generate(spec, source)
    run = ("run", "--source", str(source), "--drain", "--no-measure")
    for command in (run, ("marks", "update")):
        with console.status(" ".join(command[:2])):
            run_measured([*ADLOOM, *command, "--lake", str(lake)], out / "log.txt")
    with duckdb.connect() as connection:
        _prepare(connection, open_lake(str(lake)), source / LABELS)
        _print(console, "recall: labelled events that are marked, by any rule", _RECALL, connection)
        _print(console, "recall by rule, where it marks some", _RECALL_BY_RULE, connection)
        _print(console, "precision: marked events that are labelled", _PRECISION, connection)


def _prepare(connection: duckdb.DuckDBPyConnection, lake: Lake, labels: Path) -> None:
    """The views ``labels`` (event_type, event_id, behaviour) and ``marks`` (event_type, event_id, rule_id)."""
    waits_s = Settings().deduplicate.watermark.total_seconds()
    connection.execute(f"""
        CREATE VIEW silver AS SELECT event_type, event_id, event_time
        FROM {rows_of(lake, SILVER_EVENTS)} WHERE event_type <> 'heartbeat'
    """)
    connection.execute(f"""
        CREATE VIEW labels AS SELECT event_type, event_id, behaviour FROM read_json('{labels}')
        SEMI JOIN (
          SELECT * FROM silver WHERE event_time <= (SELECT max(event_time) FROM silver) - to_seconds({waits_s})
        ) judged USING (event_type, event_id)
    """)
    # The lake was marked once, so no mark is revoked.
    connection.execute(f"CREATE VIEW marks AS SELECT event_type, event_id, rule_id FROM {rows_of(lake, MARKS)}")


_RECALL = """
SELECT behaviour, event_type, count(*) AS labelled, count(m.event_id) AS marked,
  round(100 * count(m.event_id) / count(*), 1) AS "recall %"
FROM labels LEFT JOIN (SELECT DISTINCT event_type, event_id FROM marks) m USING (event_type, event_id)
GROUP BY ALL ORDER BY ALL
"""
_RECALL_BY_RULE = """
WITH labelled AS (SELECT behaviour, event_type, count(*) AS labelled FROM labels GROUP BY ALL)
SELECT behaviour, event_type, rule_id AS rule, labelled, count(*) AS marked,
  round(100 * count(*) / labelled, 1) AS "recall %"
FROM labels JOIN marks USING (event_type, event_id) JOIN labelled USING (behaviour, event_type)
GROUP BY behaviour, event_type, rule_id, labelled ORDER BY ALL
"""
_PRECISION = """
WITH each AS (
  SELECT rule_id AS rule, event_type, event_id, 0 AS place FROM marks
  UNION ALL SELECT DISTINCT 'any', event_type, event_id, 1 FROM marks
)
SELECT rule, event_type, count(*) AS marked, count(l.event_id) AS labelled,
  round(100 * count(l.event_id) / count(*), 1) AS "precision %"
FROM each LEFT JOIN labels l USING (event_type, event_id)
GROUP BY rule, event_type, place ORDER BY place, rule, event_type
"""


def _print(console: Console, title: str, query: str, connection: duckdb.DuckDBPyConnection) -> None:
    found = connection.sql(query)
    table = Table(title=title, title_justify="left")
    for name in found.columns:
        table.add_column(name)
    for row in found.fetchall():
        table.add_row(*_cells(row))
    console.print(table)


def _cells(row: Sequence[Any]) -> list[str]:
    return [f"{value:,}" if isinstance(value, int | float) else str(value) for value in row]


if __name__ == "__main__":
    typer.run(main)
