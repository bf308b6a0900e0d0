"""What a manifest says of the initial state, and when a query may start with one."""

import json
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import SILVER_EVENTS
from spark_jobs.lake.layout import Lake, commit_key
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.initial_state import is_ready
from spark_jobs.queries.manifest import FILES, Manifest
from spark_jobs.queries.manifests import new_manifest, with_initial_state_of, write_manifest
from spark_jobs.queries.moving_average.query import NAME as MOVING_AVERAGE
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.queries.registry import find_query
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE


def _settings(location: str, key: str = "campaign_id") -> Settings:
    return Settings.model_validate(
        {"sessionize": {"initial_state": location}, "moving_average": {"initial_state": location, "key": key}}
    )


def _manifest(settings: Settings, query: str = MOVING_AVERAGE) -> Manifest:
    return new_manifest(query, settings, FILES)


@pytest.mark.parametrize(
    ("location", "uri"),
    [
        pytest.param("", "", id="none"),
        pytest.param("/a/b c.csv", "file:///a/b c.csv", id="path"),
        pytest.param("file:///a/b%20c.csv", "file:///a/b c.csv", id="file-uri"),
        pytest.param("s3://bucket/state/", "s3a://bucket/state", id="s3"),
        pytest.param("s3a://bucket/state", "s3a://bucket/state", id="s3a"),
    ],
)
def test_the_location_is_noted_as_a_uri(location: str, uri: str) -> None:
    assert _manifest(_settings(location)).initial_state == uri


def test_a_relative_path_is_noted_as_it_was_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _manifest(_settings("values.csv")).initial_state == f"file://{tmp_path}/values.csv"


def _after_reset(before: Manifest | None, now: Settings, lake: Lake) -> Manifest:
    return with_initial_state_of(_manifest(now), before, find_query(MOVING_AVERAGE), now, lake)


def test_a_reset_keeps_what_the_query_began_with_whatever_the_setting_says(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path))
    after = _after_reset(_manifest(_settings("/first")), _settings("/second"), lake)
    assert after.initial_state == "file:///first"
    assert after.settings["moving_average.initial_state"] == "/first", "preflight still says that it is ignored"


def test_a_reset_with_another_key_leaves_the_values_of_the_old_one_behind(tmp_path: Path) -> None:
    lake, before = open_lake(str(tmp_path)), _manifest(_settings("/first"))
    assert _after_reset(before, _settings("/first", key="user_id"), lake).initial_state == ""


def test_a_reset_does_not_take_a_state_that_the_query_did_not_begin_with(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path))
    assert _after_reset(_manifest(_settings("")), _settings("/later"), lake).initial_state == ""
    assert _after_reset(None, _settings("/later"), lake).initial_state == "", "without a manifest the copy decides"


@pytest.mark.parametrize(
    ("commits", "is_begun", "expected"),
    [
        pytest.param([], False, False, id="no-table"),
        pytest.param([[]], False, False, id="no-row"),
        pytest.param([[], ['{"numRecords": 0}']], False, False, id="empty-file"),
        pytest.param([[], ['{"numRecords": 2}']], False, True, id="rows"),
        pytest.param([[], [None]], False, True, id="no-statistics"),
        pytest.param([[]], True, True, id="taken-before"),
    ],
)
def test_initial_events_wait_for_a_row_to_join(
    *, commits: list[list[str | None]], is_begun: bool, expected: bool, tmp_path: Path
) -> None:
    lake, partition = open_lake(str(tmp_path)), {"event_date": "2026-03-01", "event_type": "impression"}
    write_manifest(lake, _manifest(_settings("/events"), SESSIONIZE), 1)
    if is_begun:
        lake.files.write(f"{checkpoint_key(SESSIONIZE, 1)}/commits/7", b"v1")
    for version, files in enumerate(commits):
        adds = [{"path": "f", "stats": stats, "partitionValues": partition} for stats in files]
        lines = ['{"commitInfo": {}}', *(json.dumps({"add": add}) for add in adds)]
        lake.files.write(commit_key(SILVER_EVENTS, version), "\n".join(lines).encode())
    assert is_ready(find_query(SESSIONIZE), lake) is expected
