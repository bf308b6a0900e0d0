"""Validated gold as assets: a version is told of once, and only if it has passed the quality gate."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

from ad_dags.commands import CommandError
from ad_dags.connection import lake_connection
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.dags.validate_tables import validate_tables, validated_assets, validated_gold
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS, VALIDATED
from tests.dags.fakes import LAKE, RecordingLauncher, fake_command

Validate = Callable[..., None]


@dataclass
class _Event:
    asset: Asset
    extra: dict[str, Any]


@dataclass
class _Airflow:
    """What Airflow keeps of events: those of a task count once the task has succeeded."""

    events: list[_Event] = field(default_factory=list)
    told: list[_Event] = field(default_factory=list)

    def __getitem__(self, alias: object) -> Self:
        assert alias == validated_gold(LAKE)
        return self

    def after(self, _time: str) -> Sequence[_Event]:
        return list(self.events)

    def add(self, asset: Asset, extra: dict[str, Any]) -> None:
        self.told.append(_Event(asset, extra))

    def run(self, *, is_killed: bool = False) -> dict[str, int]:
        self.told = []
        validate_tables(LAKE, inlet_events=self, outlet_events=self)
        if not is_killed:
            self.events += self.told
        return {event.asset.name: event.extra["version"] for event in self.told}


@pytest.fixture
def validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Validate:
    """Makes the next validations print a line, end with an exit code, and leave these versions as validated."""
    lake = open_lake(str(tmp_path / "lake"))
    lake.files.write(f"{CHECKPOINTS}/attribute/attribute/v1.json", b"{}")
    connection = LakeConnection(str(tmp_path / "lake"), None, Settings(), lake, RecordingLauncher())
    monkeypatch.setattr(lake_connection, "connect", lambda *_: connection)

    def make(printed: str = "fine", code: int = 0, **versions: int) -> None:
        fake_command(tmp_path, monkeypatch, f"echo '{printed}'; exit {code}")
        lake.files.write(VALIDATED, json.dumps(versions).encode())

    return make


def test_every_table_of_gold_is_an_asset() -> None:
    assert {table: asset.name for table, asset in validated_assets(LAKE).items()} == {
        "attributions": "adloom/gold/attributions",
        "sessions": "adloom/gold/sessions",
        "campaign_stats": "adloom/gold/campaign_stats",
        "moving_averages": "adloom/gold/moving_averages",
        "user_status": "adloom/gold/user_status",
        "paths": "adloom/gold/paths",
        "credits": "adloom/gold/credits",
        "left_out": "adloom/gold/left_out",
        "net_paths": "adloom/gold/net_paths",
        "net_credits": "adloom/gold/net_credits",
    }


def test_a_validated_version_is_told_of_once(validation: Validate) -> None:
    airflow = _Airflow()
    validation(events=9, attributions=4)
    assert airflow.run(is_killed=True) == {"adloom/gold/attributions": 4}
    assert airflow.run() == {"adloom/gold/attributions": 4}, "Airflow has no record of what a killed task told"
    assert airflow.run() == {}, "nothing new"
    validation(events=9, attributions=4, sessions=0)
    assert airflow.run() == {"adloom/gold/sessions": 0}
    validation(events=9, attributions=6, sessions=1)
    assert airflow.run() == {"adloom/gold/attributions": 6, "adloom/gold/sessions": 1}
    validation(attributions=0, sessions=1)
    assert airflow.run() == {"adloom/gold/attributions": 0}, "the lake was rebuilt"


@pytest.mark.parametrize(
    ("printed", "error"),
    [("critical: attributions.cost_micros", AirflowFailException), ("error: the store is away", CommandError)],
)
def test_nothing_is_told_if_the_gate_does_not_open(validation: Validate, printed: str, error: type[Exception]) -> None:
    airflow = _Airflow()
    validation(printed, 1, attributions=4)
    with pytest.raises(error, match=printed.partition(": ")[2]):
        airflow.run()
    assert airflow.told == []
