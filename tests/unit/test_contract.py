"""The contract that settings make, its form for other tools, and what a lake remembers of it."""

import json
import logging
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft201909Validator
from pydantic import ValidationError

from expectations.contract import contract_of
from spark_jobs.config.settings import Settings, load_settings
from spark_jobs.contract.changes import check
from spark_jobs.contract.contract import Contract, read_contract
from spark_jobs.contract.events import PERSONAL_FIELDS
from spark_jobs.contract.odcs import odcs_yaml
from spark_jobs.contract.tables import CREDIT_TABLES
from spark_jobs.errors import ContractError, SettingsError
from spark_jobs.lake.contracts import contract_in_use, record
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.unit.test_cli import adloom

_CLICKS: dict[str, Any] = {
    "topics": ["clicks"],
    "event_type": "'click'",
    "map": {"event_id": "$.id", "event_time": "$.at", "user_id": "$.user", "impression_id": "$.imp"},
    "keep": {"site": {"from": "$.site"}},
}


def _settings(version: str = "1.0", **changed: Any) -> Settings:
    return Settings.model_validate({"contract": {"version": version}, "source": {"clicks": {**_CLICKS, **changed}}})


def _contract(version: str = "1.0", **changed: Any) -> Contract:
    return contract_of(_settings(version, **changed))


# What it holds.


def test_kept_columns_are_in_bronze_silver_and_on_both_sides_of_attributions() -> None:
    found = {
        (table.name, column.name, column.type)
        for table in _contract().tables
        for column in table.columns
        if "site" in column.name
    }
    assert found == {
        ("bronze", "site", "STRING"),
        ("silver", "site", "STRING"),
        ("attributions", "site", "STRING"),
        ("attributions", "click_site", "STRING"),
    }


def test_the_settings_that_say_what_rows_mean_belong_to_their_tables() -> None:
    settings_of = {table.name: table.settings for table in contract_of(Settings()).tables}
    assert settings_of["sessions"] == {
        "sessionize.gap": "5min",
        "sessionize.longest": "0s",
        "sessionize.watermark": "10min",
    }
    assert settings_of["bronze"] == {}
    assert settings_of["credits"]["credit.views"] == "fallback"
    assert settings_of["credits"] == settings_of["net_paths"]
    assert "user_status.idle_after" in settings_of["user_status"]
    assert not [name for names in settings_of.values() for name in names if "spark" in name or "initial" in name]


def _changed(before: Settings, now: Settings) -> dict[str, str]:
    return {change.what: change.verdict.value for change in check(contract_of(before), contract_of(now)).changes}


def _without_ids_of_nobody(settings: Settings) -> Settings:
    return settings.model_copy(update={"ingest": settings.ingest.model_copy(update={"nobody": ()})})


_NO_USER_PROMISED = {
    f"{table}: user_id_not_null": "breaking" for table in ("bronze", "silver", "attributions", "paths", "net_paths")
}


def test_an_event_without_a_user_breaks_readers_of_each_table_that_promised_one() -> None:
    lacking = {field: text for field, text in _CLICKS["map"].items() if field != "user_id"}
    before, now = _settings(), _settings(may_lack=["user_id"], map=lacking)
    found = _changed(_without_ids_of_nobody(before), _without_ids_of_nobody(now))
    fields = {"source.clicks.may_lack": "breaking", "source.clicks.user_id": "breaking"}
    assert found == {**fields, **_NO_USER_PROMISED}


def test_ids_that_mean_nobody_break_readers_of_the_same_tables_and_no_producer() -> None:
    found = _changed(_without_ids_of_nobody(_settings()), _settings())
    assert found == {**_NO_USER_PROMISED, "bronze: known_users_share": "safe"}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param("INGEST__MAX_RECORD_BYTES", "2048", {"record.record_too_large": "breaking"}, id="smaller-records"),
        pytest.param("INGEST__MAX_RECORD_BYTES", "9999999", {"record.record_too_large": "safe"}, id="larger-records"),
        pytest.param("SPARK__MAX_CORES", "9", {}, id="no-promise"),
        pytest.param("SESSIONIZE__WATERMARK", "9min", {"sessions: sessionize.watermark": "safe"}, id="watermark"),
        pytest.param("CAMPAIGN_STATS__FEED", "9h", {}, id="the-feed-is-no-table"),
        pytest.param(
            "CAMPAIGN_STATS__WINDOW", "20min", {"campaign_stats: campaign_stats.window": "breaking"}, id="window"
        ),
        pytest.param(
            "CREDIT__VIEWS",
            "never",
            {f"{table.name}: credit.views": "breaking" for table in CREDIT_TABLES},
            id="what-is-credited",
        ),
    ],
)
def test_a_changed_setting_changes_the_contract(name: str, text: str, expected: dict[str, str]) -> None:
    found = _changed(Settings(), load_settings(None, {f"ADLOOM_{name}": text}))
    assert {what: verdict for what, verdict in found.items() if not what.startswith("lake: ")} == expected


def test_the_fields_of_devices_break_no_producer() -> None:
    now = contract_of(Settings())
    tables = [
        one.model_copy(
            update={"columns": tuple(column for column in one.columns if column.name not in PERSONAL_FIELDS)}
        )
        for one in now.tables
    ]
    fields = tuple(field for field in now.fields if field.name not in PERSONAL_FIELDS)
    before = now.model_copy(update={"fields": fields, "tables": tuple(tables)})
    assert {change.what: change.verdict.value for change in check(before, now).changes} == {
        f"{where}.{name}": "safe" for where in ("event", "bronze", "silver") for name in PERSONAL_FIELDS
    }


@pytest.mark.parametrize("version", ["1", "1.0.0", "v1.0", "01.0", "1.", "", "-1.0"])
def test_a_version_is_major_and_minor(version: str) -> None:
    with pytest.raises(SettingsError, match=r"contract\.version"):
        load_settings(None, {"ADLOOM_CONTRACT__VERSION": version})


def test_a_version_that_toml_takes_for_a_number_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "adloom.toml"
    file.write_text("[contract]\nversion = 1.10\n")
    with pytest.raises(SettingsError, match="in quotes"):
        load_settings(file)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("{", "JSON", id="no-json"),
        pytest.param("{}", "version", id="no-contract"),
        pytest.param('{"format": 2}', "format", id="later-form"),
    ],
)
def test_what_is_no_contract_is_refused(text: str, why: str) -> None:
    with pytest.raises(ContractError, match=rf"here is no contract of this adloom: .*{why}"):
        read_contract(text, "here")


# The Open Data Contract Standard.

_SCHEMA = Draft201909Validator(json.loads(files("open_data_contract_standard").joinpath("schema.json").read_text()))
"""The official one, as the package carries it."""
_NAMES = st.from_regex(r"k_[a-z0-9_]{0,5}", fullmatch=True)
_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
_SOURCES = st.fixed_dictionaries(
    {
        "topics": st.lists(st.sampled_from(["t1", "t2", "t3"]), max_size=2, unique=True),
        "format": st.just("csv"),
        "when": _TEXTS,
        "event_type": _TEXTS,
        "map": st.fixed_dictionaries(
            {"event_id": _TEXTS, "event_time": _TEXTS, "user_id": _TEXTS},
            optional=dict.fromkeys(("is_last", "campaign_id", "cost_micros", "impression_id", "data"), _TEXTS),
        ),
        "keep": st.dictionaries(
            _NAMES,
            st.fixed_dictionaries({"from": _TEXTS, "type": st.just("decimal")}),
            max_size=2,
        ),
        "may_lack": st.sampled_from([[], ["user_id"]]),
        "unknown": st.sampled_from(["keep", "quarantine"]),
        "columns": st.just(["a", "b"]),
        "delimiter": st.just(";"),
    }
)


def _document(found: Settings) -> dict[str, Any]:
    text = odcs_yaml(contract_of(found))
    document: dict[str, Any] = yaml.safe_load(text)
    assert [error.message for error in _SCHEMA.iter_errors(document)] == []
    return document


def test_the_schema_of_the_standard_refuses_what_is_wrong() -> None:
    """Otherwise the tests below prove nothing."""
    document = _document(Settings())
    document["schema"][0]["quality"][0]["type"] = "magic"
    assert not _SCHEMA.is_valid(document)
    assert not _SCHEMA.is_valid({name: value for name, value in _document(Settings()).items() if name != "id"})


@given(st.dictionaries(_TEXTS, _SOURCES, max_size=2))
@settings(max_examples=15, deadline=None)
def test_contracts_of_any_sources_are_valid_documents(sources: dict[str, Any]) -> None:
    document = _document(Settings.model_validate({"source": sources}))
    named = {one["name"] for one in document["schema"]}
    assert {f"source_{name}" for name in sources} <= named
    ids = [one["id"] for one in document["schema"]]
    assert len(set(ids)) == len(ids)


def test_a_source_shows_how_its_fields_come_about() -> None:
    (found,) = [one for one in _document(_settings())["schema"] if one["name"] == "source_clicks"]
    logic = {one["name"]: one.get("transformLogic") for one in found["properties"]}
    assert logic == {
        "event_type": "'click'",
        "event_id": "$.id",
        "event_time": "$.at",
        "user_id": "$.user",
        "impression_id": "$.imp",
        "site": "$.site",
    }
    required = [one["name"] for one in found["properties"] if one.get("required")]
    assert required == ["event_type", "event_id", "event_time", "user_id"]


def test_personal_data_is_classified_as_such_and_is_in_no_table_of_gold() -> None:
    found = {
        (one["name"], field["name"])
        for one in _document(Settings())["schema"]
        for field in one.get("properties", [])
        if field.get("classification") == "personal"
    }
    devices = {(where, name) for where in ("source_adloom", "bronze", "silver") for name in ("ip", "user_agent")}
    assert found == {*devices, ("bronze", "raw"), ("bronze", "received_meta")}


def test_every_expectation_is_a_quality_check_of_its_table() -> None:
    contract, document = contract_of(Settings()), _document(Settings())
    objects = {one["name"]: one for one in document["schema"]}
    for table in contract.tables:
        found = objects[table.name]
        checks = [*found.get("quality", []), *(c for one in found["properties"] for c in one.get("quality", []))]
        assert sorted(one["name"] for one in checks) == sorted(rule.name for rule in table.expectations)
        assert [one["name"] for one in found["properties"]] == [column.name for column in table.columns]


def test_the_sql_of_a_quality_check_counts_the_rows_that_break_the_rule() -> None:
    with duckdb.connect() as connection:
        ran = 0
        for one in _document(Settings())["schema"]:
            queries = {check["name"]: check["query"] for check in one.get("quality", []) if check["type"] == "sql"}
            if not queries:
                continue
            columns = ", ".join(
                f'"{column["name"]}" {column["physicalType"].partition("<")[0].replace("ARRAY", "VARCHAR[]")}'
                for column in one["properties"]
            )
            connection.execute(f"CREATE TABLE {one['name']} ({columns})")
            for query in queries.values():
                assert connection.execute(query.replace("{object}", one["name"])).fetchall() == [(0,)]
                ran += 1
            if one["name"] == "silver":
                for row in (
                    ("impression", "c", 5),
                    ("impression", "c", -5),
                    ("impression", None, 5),
                    ("click", None, None),
                ):
                    connection.execute(
                        "INSERT INTO silver (event_type, campaign_id, cost_micros) VALUES (?, ?, ?)", row
                    )
                negative = queries["cost_micros_not_negative"].replace("{object}", "silver")
                missing = queries["campaign_id_not_null"].replace("{object}", "silver")
                assert connection.execute(negative).fetchall() == [(1,)]
                assert connection.execute(missing).fetchall() == [(1,)]
    assert ran > 20


# In a lake.


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    (tmp_path / "lake").mkdir()
    return open_lake(str(tmp_path / "lake"))


def test_a_start_writes_the_contract_down(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    assert contract_in_use(lake) is None
    record(lake, _contract())
    record(lake, _contract())
    assert contract_in_use(lake) == _contract()
    assert (lake.path / "_contracts" / "1.0.json").exists()
    assert json.loads((lake.path / "_contracts" / "in_use.json").read_text())["version"] == "1.0"
    assert caplog.text == ""


def test_a_safe_change_under_the_same_version_is_written_down_with_a_warning(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    record(lake, _contract())
    more = _contract(keep={**_CLICKS["keep"], "page": {"from": "$.page"}})
    record(lake, more)
    assert "set contract.version to 1.1" in caplog.text
    assert contract_in_use(lake) == more
    caplog.clear()
    record(lake, more)
    assert caplog.text == ""


def test_a_breaking_change_under_the_same_version_is_not_written_down_and_warns_at_every_start(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    record(lake, _contract())
    for _ in range(2):
        caplog.clear()
        record(lake, _contract(keep={}))
        assert "set contract.version to 2.0" in caplog.text
        assert "source.clicks.keep.site was $.site as string, is : breaking" in caplog.text
    assert contract_in_use(lake) == _contract()


def test_a_new_version_is_in_use_from_its_start_on_and_the_old_one_again_after_a_return(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    new = _contract("2.0", keep={})
    record(lake, _contract())
    record(lake, new)
    assert contract_in_use(lake) == new
    record(lake, _contract())
    assert contract_in_use(lake) == _contract()
    assert caplog.text == ""


def test_a_breaking_change_with_a_new_minor_only_is_a_warning(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    record(lake, _contract())
    record(lake, _contract("1.1", keep={}))
    assert "set contract.version to 2.0" in caplog.text


def test_a_damaged_contract_does_not_keep_a_job_from_starting(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    record(lake, _contract())
    lake.files.write("_contracts/1.0.json", b"{")
    with caplog.at_level(logging.WARNING):
        record(lake, _contract())
    assert "was not compared" in caplog.text
    with pytest.raises(ContractError, match="is no contract"):
        contract_in_use(lake)


# The command.


@pytest.fixture
def tomls(tmp_path: Path) -> Path:
    """Settings ``old.toml``, ``safe.toml``, ``breaking.toml`` and ``wrong.toml``."""
    form = '[contract]\nversion = "{}"\n[ingest]\nmax_record_bytes = {}\n'
    for name, version, size in (("old", "1.0", 5000), ("safe", "1.1", 6000), ("breaking", "1.0", 4000)):
        (tmp_path / f"{name}.toml").write_text(form.format(version, size))
    (tmp_path / "wrong.toml").write_text("[ingest]\nmax_record_bytes = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("new", "code", "said"),
    [
        pytest.param("old.toml", 0, "the contracts promise the same", id="same"),
        pytest.param("safe.toml", 0, "safe changes come with a new version", id="safe"),
        pytest.param("breaking.toml", 1, "set contract.version to 2.0 or later", id="breaking"),
    ],
)
def test_the_exit_code_says_whether_a_change_is_breaking(tomls: Path, new: str, code: int, said: str) -> None:
    done = adloom("contract", "check", str(tomls / "old.toml"), str(tomls / new))
    assert done.returncode == code, done.stderr
    assert said in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("new", "why"),
    [
        pytest.param("wrong.toml", "max_record_bytes", id="refused"),
        pytest.param("none.toml", "cannot be read", id="missing"),
        pytest.param("none.json", "cannot be read", id="missing-json"),
    ],
)
def test_what_cannot_be_compared_gives_exit_code_2_and_the_reason(tomls: Path, new: str, why: str) -> None:
    done = adloom("contract", "check", str(tomls / "old.toml"), str(tomls / new), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error:")
    assert why in done.stderr


def test_an_exported_contract_can_be_compared_with_settings(tomls: Path) -> None:
    exported = tomls / "old.json"
    done = adloom("contract", "export", "--format", "json", "--out", str(exported), "--config", str(tomls / "old.toml"))
    assert done.returncode == 0, done.stderr
    done = adloom("contract", "check", str(exported), str(tomls / "breaking.toml"), "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    (change,) = found["changes"]
    assert (change["what"], change["before"], change["now"], change["verdict"], change["whom"]) == (
        *("record.record_too_large", "5,000 bytes", "4,000 bytes", "breaking"),
        "producers",
    )
    assert (found["version"]["level"], found["version"]["before"]) == ("error", "1.0")


def test_the_contract_of_a_lake_is_compared_with_the_settings_in_effect(tomls: Path, lake: Lake) -> None:
    command = ("contract", "check", "--lake", str(lake.path), "--config", str(tomls / "breaking.toml"))
    lake.files.write("_releases/1.0.0/release.json", b"{}")
    done = adloom(*command)
    assert done.returncode == 0, done.stderr
    assert "the lake has no contract yet" in " ".join(done.stdout.split())
    record(lake, contract_of(load_settings(tomls / "old.toml")))
    assert adloom(*command).returncode == 1
    assert adloom("contract", "check", "--lake", str(lake.path / "none")).returncode == 2


def test_without_anything_to_compare_with_the_command_says_what_to_give() -> None:
    done = adloom("contract", "check")
    assert done.returncode == 2
    assert "give OLD and NEW, or --lake" in done.stderr


def test_the_exported_document_is_valid(tomls: Path) -> None:
    done = adloom("contract", "export", "--config", str(tomls / "old.toml"))
    assert done.returncode == 0, done.stderr
    assert _SCHEMA.is_valid(yaml.safe_load(done.stdout))
    assert adloom("contract", "export", "--format", "xml").returncode == 2


def test_the_contract_is_shown(tomls: Path) -> None:
    done = adloom("contract", "show", "--config", str(tomls / "old.toml"))
    assert done.returncode == 0, done.stderr
    for word in ("version 1.0", "record_too_large", "gold/attributions", "event_id"):
        assert word in done.stdout


def test_terms_are_not_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        _contract().version = "2.0"  # type: ignore[misc]
