"""An analyst's first ten minutes on a lake in MinIO, with keys that only read gold: docs/query-gold.md, by step."""

import csv
import json
import os
import re
import subprocess
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import duckdb
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from infra.environments import python_of
from spark_jobs.contract.tables import ATTRIBUTIONS, SESSIONS
from spark_jobs.lake.layout import Lake
from tests.stack.flow import lake_of_analyst
from tests.stack.minio import Minio
from tests.support.drivers import ADLOOM
from tests.support.lakes import rows_by_name
from tests.support.walks import perform, steps

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.stack

_LAKE, _ANALYST = "s3a://stack/lakes/analyst", "ana"
_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "query-gold.md").read_text(encoding="utf-8")
_RECIPES = re.findall(r"```python\n(.*?)```", _PAGE.partition("## From other programs")[2], re.DOTALL)


@pytest.fixture(scope="module")
def lake(minio: Minio, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A drained lake, and an analyst who may read its gold."""
    return lake_of_analyst(_LAKE, _ANALYST, minio, tmp_path_factory.mktemp("analyst"))


@pytest.fixture
def analyst(lake: Lake) -> dict[str, str]:
    """Her environment: her profile, and no keys of anybody else."""
    assert lake.files.names("gold"), "the run wrote nothing"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_ACCESS", "AWS_SECRET"))}
    return {**kept, "ADLOOM_S3__PROFILE": _ANALYST, "ADLOOM_LAKE": _LAKE, "JAVA_HOME": "/no/java"}


def _adloom(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*ADLOOM, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_she_queries_gold_and_exports_it(lake: Lake, analyst: dict[str, str], tmp_path: Path) -> None:
    done = _adloom(analyst, "sql", "SELECT status, count(*) AS n FROM attributions GROUP BY ALL", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = {row["status"]: row["n"] for row in json.loads(done.stdout)}
    assert found == Counter(row["status"] for row in rows_by_name(lake, ATTRIBUTIONS))
    done = _adloom(analyst, "export", "sessions", "daily_campaigns", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    exported = [
        row for file in (tmp_path / "out").rglob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()
    ]
    assert {row["session_id"] for row in exported if "session_id" in row} == {
        row["session_id"] for row in rows_by_name(lake, SESSIONS)
    }


def test_her_first_ten_minutes(lake: Lake, analyst: dict[str, str], tmp_path: Path) -> None:
    known, daily, as_it_was, to_file = (perform(step, analyst, tmp_path) for step in steps("As an analyst"))
    for done in (known, daily, as_it_was, to_file):
        assert done.returncode == 0, done.stderr
    assert "impressions_without_cost" in known.stdout
    for status, count in Counter(row["status"] for row in rows_by_name(lake, ATTRIBUTIONS)).items():
        assert re.search(rf"{status} +{count}\b", daily.stdout), daily.stdout
    with (tmp_path / "daily.csv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    shown = {row["impression_id"] for row in rows_by_name(lake, ATTRIBUTIONS) if row["impression_id"]}
    assert sum(int(row["impressions"]) for row in written) == len(shown)


def test_she_reads_no_raw_record_and_writes_nothing(lake: Lake, analyst: dict[str, str], minio: Minio) -> None:
    for table in ("bronze", "silver", "quarantine"):
        refused = _adloom(analyst, "sql", f"SELECT count(*) FROM {table}")
        assert refused.returncode == 1, refused.stdout
        assert "AccessDenied" in refused.stderr
        assert "Traceback" not in refused.stderr
    session = boto3.Session(profile_name=_ANALYST)
    store = session.client("s3", endpoint_url=minio.endpoint, region_name="us-east-1")
    bucket, _, prefix = _LAKE.partition("://")[2].partition("/")
    (raw, *_), (kept, *_) = lake.files.walk("bronze"), lake.files.walk("gold")
    acts: list[tuple[bool, Callable[[], object]]] = [
        (True, lambda: store.get_object(Bucket=bucket, Key=f"{prefix}/{kept.key}")),
        (False, lambda: store.get_object(Bucket=bucket, Key=f"{prefix}/{raw.key}")),
        (False, lambda: store.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/bronze/")),
        (False, lambda: store.put_object(Bucket=bucket, Key=f"{prefix}/{kept.key}", Body=b"")),
        (False, lambda: store.put_object(Bucket=bucket, Key=f"{prefix}/gold/new", Body=b"")),
        (False, lambda: store.delete_object(Bucket=bucket, Key=f"{prefix}/{kept.key}")),
    ]
    for allowed, act in acts:
        if allowed:
            act()
            continue
        with pytest.raises(ClientError) as error:
            act()
        assert error.value.response["Error"]["Code"] == "AccessDenied"


@pytest.fixture
def elsewhere(analyst: dict[str, str], minio: Minio) -> dict[str, str]:
    """The environment of a program that knows nothing of adloom."""
    keys = boto3.Session(profile_name=_ANALYST).get_credentials().get_frozen_credentials()
    return {
        **analyst,
        "GOLD": f"{_LAKE.replace('s3a://', 's3://')}/gold",
        "AWS_ENDPOINT_URL": minio.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
    }


@pytest.mark.parametrize("recipe", _RECIPES[:3], ids=["delta-rs and pandas", "polars", "duckdb"])
def test_recipes_of_the_page_run_as_they_stand(lake: Lake, elsewhere: dict[str, str], recipe: str) -> None:
    done = subprocess.run(
        [python_of("analyst"), "-c", recipe], env=elsewhere, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    table, column = (SESSIONS, "ended_by") if "sessions" in recipe else (ATTRIBUTIONS, "status")
    for value, count in Counter(row[column] for row in rows_by_name(lake, table)).items():
        assert re.search(rf"{value}\W+{count}\b", done.stdout), done.stdout


def test_dbt_builds_the_marts_and_tells_how_fresh_their_sources_are(
    lake: Lake, elsewhere: dict[str, str], tmp_path: Path
) -> None:
    project = _ROOT / "examples" / "dbt"
    places = {
        "MARTS": str(tmp_path / "marts.duckdb"),
        "DBT_PROFILES_DIR": str(project),
        "DBT_PROJECT_DIR": str(project),
    }
    folders = ["--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path / "logs"), "--no-use-colors"]
    dbt = [str(Path(python_of("analyst")).with_name("dbt"))]

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*dbt, *command, *folders], env=elsewhere | places, capture_output=True, text=True, timeout=300, check=False
        )

    built = run("build")
    assert built.returncode == 0, built.stdout
    assert "PASS=7 WARN=0 ERROR=0" in built.stdout
    with duckdb.connect(str(tmp_path / "marts.duckdb"), read_only=True) as marts:
        campaigns = marts.execute("SELECT sum(impressions), sum(clicks), sum(cost) FROM campaign_days").fetchall()
        users = marts.execute("SELECT sum(sessions), sum(clicks) FROM user_days").fetchall()
    rows, sessions = rows_by_name(lake, ATTRIBUTIONS), rows_by_name(lake, SESSIONS)
    costs = {row["impression_id"]: row["cost_micros"] for row in rows if row["status"] != "orphan_click"}
    clicks = sum(row["status"] == "clicked" for row in rows)
    assert [(*counts, int(cost * 1_000_000)) for *counts, cost in campaigns] == [
        (len(costs), clicks, sum(costs.values()))
    ]
    assert users == [(len(sessions), sum(row["click_count"] for row in sessions))]

    freshness = run("source", "freshness")
    results = json.loads((tmp_path / "target" / "sources.json").read_text())["results"]
    newest = {one["unique_id"].rpartition(".")[2]: datetime.fromisoformat(one["max_loaded_at"]) for one in results}
    assert newest["sessions"].replace(tzinfo=None) == max(row["session_end"] for row in sessions)
    assert freshness.returncode == 1, "events of 2025 are not fresh"
    assert {one["status"] for one in results} == {"error"}
