"""Which changed settings a checkpoint tolerates."""

from datetime import UTC, datetime

import pytest

from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.contract.compatibility import Compatibility, SettingChange
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.manifest import FILES, KAFKA, Manifest
from spark_jobs.queries.registry import JOB_OF_QUERY, find_query
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.queries.state_settings import changes


def _change(query: str, before: dict[str, str], now: dict[str, str], source: str = FILES) -> list[SettingChange]:
    """What differs for ``query`` between two environments."""
    manifest = Manifest(
        query=query,
        package_version="0",
        state_format=find_query(query).state_format,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        settings=find_query(query).state_settings(_settings(before), source),
    )
    return list(changes(find_query(manifest.query), manifest, find_query(query).state_settings(_settings(now), source)))


def _settings(environ: dict[str, str]) -> Settings:
    return load_settings(None, {f"ADLOOM_{name}": value for name, value in environ.items()})


@pytest.mark.parametrize(
    ("query", "before", "now", "verdict"),
    [
        pytest.param(DEDUPLICATE, {}, {"DEDUPLICATE__MODE": "forever"}, Compatibility.BREAKING, id="mode"),
        pytest.param(DEDUPLICATE, {}, {"DEDUPLICATE__WATERMARK": "4h"}, Compatibility.BREAKING, id="longer-memory"),
        pytest.param(DEDUPLICATE, {"DEDUPLICATE__WATERMARK": "4h"}, {}, Compatibility.SAFE, id="shorter-memory"),
        pytest.param(ATTRIBUTE, {}, {"ATTRIBUTE__JOIN": "inner"}, Compatibility.BREAKING, id="join"),
        pytest.param(ATTRIBUTE, {}, {"ATTRIBUTE__WINDOW": "61min"}, Compatibility.BREAKING, id="longer-window"),
        pytest.param(ATTRIBUTE, {}, {"ATTRIBUTE__WINDOW": "59min"}, Compatibility.SAFE, id="shorter-window"),
        pytest.param(ATTRIBUTE, {}, {"ATTRIBUTE__CLICK_WATERMARK": "2h"}, Compatibility.SAFE, id="shorter-watermark"),
        pytest.param(SESSIONIZE, {}, {"SESSIONIZE__GAP": "4min"}, Compatibility.BREAKING, id="shorter-gap"),
        pytest.param(SESSIONIZE, {}, {"SESSIONIZE__WATERMARK": "11min"}, Compatibility.BREAKING, id="longer-lateness"),
        pytest.param(SESSIONIZE, {}, {"SPARK__SHUFFLE_PARTITIONS": "9"}, Compatibility.IGNORED, id="partitions"),
        pytest.param(ATTRIBUTE, {}, {"SPARK__JOIN_STATE": "by_key"}, Compatibility.IGNORED, id="join-state"),
        pytest.param(SESSIONIZE, {}, {"SPARK__STATE_STORE": "memory"}, Compatibility.BREAKING, id="state-store"),
    ],
)
def test_a_changed_setting_is_judged(
    query: str, before: dict[str, str], now: dict[str, str], verdict: Compatibility
) -> None:
    change = _change(query, before, now)[0]
    assert change.verdict is verdict
    assert change.why


@pytest.mark.parametrize("query", JOB_OF_QUERY)
def test_what_the_state_does_not_depend_on_may_change(query: str) -> None:
    other = {"INGEST__MAX_FUTURE_SKEW": "1min", "JOB__TRIGGER": "asap", "SPARK__DRIVER_MEMORY": "1g"}
    assert _change(query, {}, other) == []


def test_a_manifest_older_than_a_setting_has_what_held_then() -> None:
    now = find_query(ATTRIBUTE).state_settings(Settings(), FILES)
    manifest = Manifest(
        query=ATTRIBUTE,
        package_version="0",
        state_format=find_query(ATTRIBUTE).state_format,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        settings={name: value for name, value in now.items() if name != "spark.join_state"},
    )
    assert list(changes(find_query(manifest.query), manifest, now | {"spark.join_state": "by_key"})) == []
    (change,) = changes(find_query(manifest.query), manifest, now)
    assert (change.before, change.verdict) == ("by_key", Compatibility.IGNORED)


def test_topics_may_be_added_but_not_left_out() -> None:
    one, two = {"KAFKA__TOPICS": "clicks"}, {"KAFKA__TOPICS": "impressions,clicks"}
    (added,) = _change(INGEST, one, two, KAFKA)
    (left_out,) = _change(INGEST, two, one, KAFKA)
    assert added.verdict is Compatibility.SAFE
    assert left_out.verdict is Compatibility.BREAKING
    assert "impressions" in left_out.why
    assert _change(INGEST, one, two, FILES) == [], "a folder has no topics"


def test_another_kind_of_source_is_breaking() -> None:
    manifest = Manifest(
        query=INGEST,
        package_version="0",
        state_format=find_query(INGEST).state_format,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        settings=find_query(INGEST).state_settings(Settings(), FILES),
    )
    found = {
        change.setting: change.verdict
        for change in changes(
            find_query(manifest.query), manifest, find_query(INGEST).state_settings(Settings(), KAFKA)
        )
    }
    assert found["source"] is Compatibility.BREAKING


def test_another_form_of_the_state_is_breaking() -> None:
    manifest = Manifest(
        query=ATTRIBUTE,
        package_version="0.0.9",
        state_format=find_query(ATTRIBUTE).state_format - 1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        settings=find_query(ATTRIBUTE).state_settings(Settings(), FILES),
    )
    (change,) = changes(find_query(manifest.query), manifest, find_query(ATTRIBUTE).state_settings(Settings(), FILES))
    assert change.verdict is Compatibility.BREAKING
    assert "0.0.9" in change.why
