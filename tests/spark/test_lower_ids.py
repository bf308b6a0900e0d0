"""An app that writes ids in capitals and a server that does not: with ``ingest.lower_ids`` they are one id."""

import json
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS
from tests.support.equality import assert_lake_equals_oracle
from tests.support.lakes import RunLake, read_table

pytestmark = pytest.mark.derived


def test_a_click_finds_its_impression_whatever_the_case_of_their_ids(run_lake: RunLake, tmp_path: Path) -> None:
    app = {"event_type": "impression", "event_id": "8F3C-\u00c4", "user_id": "U", "campaign_id": "C", "ad_id": "A"}
    server = {"event_type": "click", "event_id": "k", "user_id": "u", "impression_id": "8f3c-\u00c4"}
    times = ("2025-01-06T12:00:00Z", "2025-01-06T12:00:05Z", "2025-01-06T12:00:09Z")
    events = [app, server, server | {"event_id": "K"}]
    lines = [json.dumps(event | {"event_time": time}) for event, time in zip(events, times, strict=True)]
    source, settings = tmp_path / "source", Settings.model_validate({"ingest": {"lower_ids": True}})
    source.mkdir()
    (source / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    lake = run_lake(source, settings=settings)
    (row,) = read_table(lake, ATTRIBUTIONS)
    found = dict(zip(ATTRIBUTIONS.column_names, row, strict=True))
    assert [found[name] for name in ("status", "impression_id", "click_id", "user_id", "campaign_id")] == [
        "clicked",
        "8f3c-\u00c4",
        "k",
        "u",
        "C",
    ]
    assert {row[0] for row in read_table(lake, BRONZE_EVENTS)} == set(lines), "what came is kept as it came"
    assert_lake_equals_oracle(lake, source, settings)
