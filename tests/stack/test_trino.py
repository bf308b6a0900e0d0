"""Trino on a lake in MinIO, with the keys of an analyst: the recipe of docs/query-gold.md."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest

from spark_jobs.contract.tables import ATTRIBUTIONS, CAMPAIGN_STATS, SESSIONS, Table
from spark_jobs.lake.layout import Lake
from tests.stack.flow import lake_of_analyst
from tests.stack.minio import Minio
from tests.stack.trino import Trino, TrinoError
from tests.support.drivers import ADLOOM
from tests.support.lakes import read_table

pytestmark = [pytest.mark.stack, pytest.mark.slow]

_LAKE, _ANALYST = "s3a://stack/lakes/trino", "tina"
_GOLD = f"{_LAKE.replace('s3a://', 's3://')}/gold"


@pytest.fixture(scope="module")
def lake(minio: Minio, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A drained lake, and an analyst who may read its gold."""
    return lake_of_analyst(_LAKE, _ANALYST, minio, tmp_path_factory.mktemp("trino"))


@pytest.fixture(scope="module")
def trino(lake: Lake, minio: Minio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """A server with her keys, and no keys of anybody else, on which the tables are registered."""
    assert lake.files.names("gold"), "the run wrote nothing"
    keys = boto3.Session(profile_name=_ANALYST).get_credentials().get_frozen_credentials()
    hers = {
        "AWS_ENDPOINT_URL": minio.endpoint,
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
    }
    server = Trino(tmp_path_factory.mktemp("trino-state"))
    try:
        server.start({**os.environ, **hers})
        failures = server.register(_GOLD)
        assert len(failures) == 2, failures
        assert all("No transaction log found" in failure for failure in failures), (
            "restatements and days are not written"
        )
        yield server
    finally:
        server.stop()


def _milliseconds(time: datetime | None) -> str | None:
    """A time as Trino reads it: rounded, half up."""
    if time is None:
        return None
    whole = time.replace(microsecond=0) + timedelta(milliseconds=(time.microsecond + 500) // 1000)
    return f"{whole:%Y-%m-%d %H:%M:%S}.{whole.microsecond // 1000:03} UTC"


def _column(lake: Lake, table: Table, name: str) -> list[Any]:
    index = table.column_names.index(name)
    return [row[index] for row in read_table(lake, table)]


def test_trino_counts_as_the_tables_do(lake: Lake, trino: Trino) -> None:
    names = ("impression_id", "click_id", "impression_time", "cost_micros")
    columns = zip(*(_column(lake, ATTRIBUTIONS, name) for name in names), strict=True)
    rows = Counter((i, c, _milliseconds(time), cost) for i, c, time, cost in columns)
    assert Counter(map(tuple, trino.query(f"SELECT {', '.join(names)} FROM attributions"))) == rows
    ended = dict(trino.query("SELECT ended_by, count(*) FROM sessions GROUP BY ended_by"))
    assert ended == Counter(_column(lake, SESSIONS, "ended_by"))
    stats = trino.query("SELECT count(*), sum(impressions), sum(clicks), sum(cost_micros) FROM campaign_stats")
    sums = (sum(_column(lake, CAMPAIGN_STATS, name)) for name in ("impressions", "clicks", "cost_micros"))
    assert stats == [[len(read_table(lake, CAMPAIGN_STATS)), *sums]]


def test_earlier_versions_are_those_of_adloom(lake: Lake, trino: Trino) -> None:
    (versions,) = zip(*trino.query('SELECT version FROM "attributions$history" ORDER BY version'), strict=True)
    newest = lake.newest_commit(ATTRIBUTIONS.path)
    assert newest is not None
    assert versions == tuple(range(newest + 1))
    for version in versions[:2]:
        query = "SELECT status, count(*), sum(cost_micros) FROM attributions {} GROUP BY status"
        of_trino = sorted(trino.query(query.format(f"FOR VERSION AS OF {version}")))
        command = [*ADLOOM, "sql", query.format(""), "--as-of", f"attributions={version}", "--lake", _LAKE]
        done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, timeout=120, check=True)
        assert sorted(list(row.values()) for row in json.loads(done.stdout)) == of_trino


@pytest.mark.parametrize(
    "statement",
    [
        f"CALL system.register_table('gold', 'bronze', '{_LAKE.replace('s3a://', 's3://')}/bronze/events')",
        f"CALL system.register_table('gold', 'silver', '{_LAKE.replace('s3a://', 's3://')}/silver/events')",
        "INSERT INTO user_status SELECT * FROM user_status LIMIT 1",
        "DELETE FROM user_status",
        "ALTER TABLE user_status EXECUTE optimize",
        f"CREATE TABLE stray WITH (location = '{_GOLD}/stray') AS SELECT 1 AS one",
    ],
    ids=["bronze", "silver", "insert", "delete", "optimize", "create"],
)
def test_it_reads_nothing_else_and_writes_nothing(lake: Lake, trino: Trino, statement: str) -> None:
    before = sorted(file.key for file in lake.files.walk(""))
    with pytest.raises(TrinoError, match="Status Code: 403"):
        trino.query(statement)
    assert sorted(file.key for file in lake.files.walk("")) == before
