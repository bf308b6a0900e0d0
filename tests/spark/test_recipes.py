"""docs/events.md: each recipe gives the rows of bronze that the page shows."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.sources import FIELDS, kept_columns
from spark_jobs.contract.events import OK
from spark_jobs.formats.decoding import Decoded
from spark_jobs.ingest.judge import judge
from tests.support.recipes import Recipe, plain, recipes

_NOW = datetime(2026, 8, 1, tzinfo=UTC)
_COLUMNS = (
    "raw STRING, source STRING, origin STRING, ingest_time TIMESTAMP, received_time TIMESTAMP, text STRING, "
    "decode_verdict STRING, decode_reason STRING"
)


@pytest.mark.parametrize("recipe", list(recipes()), ids=lambda recipe: recipe.name)
def test_a_recipe_gives_the_rows_shown(spark: SparkSession, recipe: Recipe) -> None:
    rows = []
    for number, record in enumerate(recipe.records):
        decoded = record if isinstance(record, Decoded) else Decoded(None)
        raw = record.decode() if isinstance(record, bytes) else "as received"
        rows.append((raw, f"{number}", None, _NOW, _NOW, *decoded))
    found = judge(spark.createDataFrame(rows, _COLUMNS).coalesce(1), recipe.settings).collect()
    assert [row["verdict"] for row in found] == [OK] * len(rows)
    names = [*FIELDS, *(column.name for column in kept_columns(recipe.settings.sources))]
    utc = [{name: _utc(row[name]) for name in names} for row in found]
    assert [plain(row) for row in utc] == list(recipe.events)


def _utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
