"""The place from an Airflow connection: it precedes the environment, commands get it, and what is wrong is named."""

import asyncio
import base64
import json
import threading
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

from ad_dags.commands import run_adloom
from ad_dags.connection import hook, lake_connection
from ad_dags.connection.airflow_connection import FIELDS, variables_of_connection
from ad_dags.connection.hook import AdloomHook
from ad_dags.connection.lake_connection import KnownConnection, LakeConnection, jobs_here
from ad_dags.drivers.launchers import DriverState
from ad_dags.drivers.launchers.cluster import ClusterLauncher
from ad_dags.drivers.launchers.supervisor import SupervisorLauncher
from ad_dags.drivers.triggers import supervise as supervise_trigger
from ad_dags.drivers.triggers.supervise import SuperviseDriverTrigger
from ad_dags.provider import get_provider_info
from spark_jobs.config.settings import ENV_PREFIX, Settings, load_settings
from spark_jobs.errors import SettingsError
from spark_jobs.lake.open import open_lake
from spark_jobs.streams.desired_state import RunState, set_desired
from tests.dags.fakes import LAKE, RecordingLauncher, fake_command

_SUPERVISOR = {"supervisor_address": "127.0.0.1:1", "supervisor_password": "hush"}
_PST = "pst"
Connect = Callable[..., None]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Connect:
    """Makes a connection ``ads``, in the environment, where Airflow's first secrets backend looks."""
    monkeypatch.setenv("ADLOOM_CONNECTION", "ads")
    monkeypatch.setenv("ADLOOM_LAKE", "of-the-environment")
    monkeypatch.setenv("ADLOOM_JOBS", "measure")

    def make(extra: Any = _SUPERVISOR, **fields: Any) -> None:
        described = {"conn_type": "adloom", "host": str(tmp_path / "lake"), "extra": extra, **fields}
        monkeypatch.setenv("AIRFLOW_CONN_ADS", json.dumps(described))

    return make


def test_the_connection_precedes_the_environment(connect: Connect, tmp_path: Path) -> None:
    connect({**_SUPERVISOR, "jobs": "attribute", "sessionize__gap": "7min", "source": ""})
    connection = lake_connection.connect(LAKE)
    assert connection.location == str(tmp_path / "lake")
    assert connection.settings.sessionize.gap.total_seconds() == 420
    assert isinstance(connection.launcher, SupervisorLauncher)
    assert connection.launcher.address == "127.0.0.1:1"
    assert jobs_here(LAKE) == ["attribute"]


def test_what_the_connection_leaves_out_is_that_of_the_environment(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADLOOM_SUPERVISOR_ADDRESS", "127.0.0.1:2")
    connect({"supervisor_password": "hush"}, host=None)
    connection = lake_connection.connect(LAKE)
    assert connection.location == "of-the-environment"
    assert isinstance(connection.launcher, SupervisorLauncher)
    assert connection.launcher.address == "127.0.0.1:2"
    assert jobs_here(LAKE) == ["measure"]


def test_login_and_password_are_the_keys_of_the_store(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-environment")
    monkeypatch.setenv("ADLOOM_S3__PROFILE", "no-such-profile")
    connect(host="s3a://ads/lake", login="key", password=_PST)
    connection = lake_connection.connect(LAKE)
    used = connection.lake.files.client._request_signer._credentials  # type: ignore[attr-defined]
    assert (used.access_key, used.secret_key, used.token) == ("key", "pst", None)
    assert "pst" not in repr(connection)
    connect(host="s3a://ads/lake", login="key", password=_PST, extra={**_SUPERVISOR, "session_token": "tok"})
    connection = lake_connection.connect(LAKE)
    used = connection.lake.files.client._request_signer._credentials  # type: ignore[attr-defined]
    assert (used.access_key, used.secret_key, used.token) == ("key", "pst", "tok"), "keys of STS, Vault and SSO expire"
    assert "tok" in connection.variables.values(), "commands need it, too"
    assert "tok" not in repr(connection)


def test_commands_get_the_connection_by_their_environment(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN ADLOOM_S3__PROFILE ADLOOM_KAFKA__PASSWORD"
    shown = "".join(f"[${name}]" for name in [*names.split(), "ADLOOM_SUPERVISOR_PASSWORD"])
    fake_command(tmp_path, monkeypatch, f'echo "$@"; echo "{shown}"')
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-other-keys")
    monkeypatch.setenv("ADLOOM_S3__PROFILE", "of-the-environment")
    connect({**_SUPERVISOR, "kafka__password": "pst2", "maintenance_profile": "jobs"}, login="key", password=_PST)
    connection = lake_connection.connect(LAKE)
    words, got = run_adloom(connection, ["validate"])[1].splitlines()
    assert words == f"validate --lake {connection.location}"
    assert got == "[key][pst][][][pst2][]"
    assert run_adloom(connection, ["maintain"], changes_lake=True)[1].endswith("[key][pst][][jobs][pst2][]")


def test_drivers_that_are_submitted_get_it_too(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted: list[Any] = []
    monkeypatch.setattr(
        "ad_dags.connection.lake_connection.run_program", lambda words, variables: submitted.extend([words, variables])
    )
    connect({"cluster": "yarn", "yarn_address": "http://127.0.0.1:1"}, login="key", password=_PST)
    launcher = lake_connection.connect(LAKE).launcher
    assert isinstance(launcher, ClusterLauncher)
    launcher._submit("attribute")
    words, variables = submitted
    assert words[:2] == ["submit", "attribute"]
    assert "pst" not in " ".join(words)
    assert variables["AWS_SECRET_ACCESS_KEY"] == _PST


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        pytest.param({"conn_type": "aws"}, "has the type 'aws'; create it as 'adloom'", id="another type"),
        pytest.param({"login": "key"}, "has a login but no password; they are access key and secret", id="half a key"),
        pytest.param({"password": "pst"}, "has a password but no login", id="the other half"),
        pytest.param({"extra": "{pst"}, "extra is not a JSON object", id="no JSON"),
        pytest.param({"extra": '["pst"]'}, "extra is not a JSON object", id="a list"),
        pytest.param({"extra": {"supervisor": "pst"}}, "no extra field 'supervisor'; there are config, ", id="unknown"),
        pytest.param({"extra": {"jobs": ["pst"]}}, "extra field 'jobs' is a list; write it as a string", id="no text"),
        pytest.param({"extra": {"kafka__nothing": "pst"}}, r"refused:\s+kafka.nothing", id="no such setting"),
        pytest.param(
            {"extra": {"supervisor_password": "pst"}},
            "ADLOOM_SUPERVISOR_ADDRESS not set .* nor by the connection",
            id="incomplete",
        ),
    ],
)
def test_what_is_wrong_is_named_without_its_value(connect: Connect, fields: dict[str, Any], why: str) -> None:
    connect(**fields)
    with pytest.raises(SettingsError, match=why) as refused:
        lake_connection.connect(LAKE)
    assert "pst" not in str(refused.value)


def test_a_connection_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADLOOM_CONNECTION", "nowhere")
    with pytest.raises(SettingsError, match="connection 'nowhere', which no secrets backend of Airflow has"):
        lake_connection.connect(LAKE)


def test_numbers_and_truth_values_are_written_as_variables_are(connect: Connect) -> None:
    connect({"s3__path_style": False, "job__stop_timeout": 90})
    variables = variables_of_connection("ads")
    assert (variables["ADLOOM_S3__PATH_STYLE"], variables["ADLOOM_JOB__STOP_TIMEOUT"]) == ("false", "90")


# Processes that live long.


def _connection(tmp_path: Path, name: str = "lake", airflow_connection: str = "") -> LakeConnection:
    lake, launcher = open_lake(str(tmp_path / name)), RecordingLauncher(DriverState.RUNNING)
    return LakeConnection(str(tmp_path / name), None, Settings(), lake, launcher, name=airflow_connection)


def test_a_place_of_a_connection_is_found_again_after_a_minute(tmp_path: Path) -> None:
    first, second, third = (_connection(tmp_path, name, "ads") for name in ("first", "second", "third"))
    found: list[LakeConnection | None] = [first, second, None, third]
    clock = {"now": 0.0}

    def find() -> LakeConnection:
        connection = found.pop(0)
        if connection is None:
            raise SettingsError("the secrets backend is away")
        return connection

    known = KnownConnection(find, lambda: clock["now"])

    def at(seconds: float) -> str:
        clock["now"] = seconds
        return Path(known.now().location).name

    seen = [at(seconds) for seconds in (0.0, 59.9, 60.0, 120.0, 121.0, 180.0)]
    assert seen == ["first", "first", "second", "second", "second", "third"]


def test_a_password_in_a_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    file, clock = tmp_path / "password", {"now": 0.0}
    given = {"ADLOOM_LAKE": str(tmp_path), "ADLOOM_SUPERVISOR_ADDRESS": "127.0.0.1:1"}
    given["ADLOOM_SUPERVISOR_PASSWORD_FILE"] = str(file)
    known = KnownConnection(lambda: lake_connection.connect(LAKE, given), lambda: clock["now"])
    sent = []
    for text in ("before", "after"):
        file.write_text(f"{text}\n")
        clock["now"] += 61
        launcher = known.now().launcher
        assert isinstance(launcher, SupervisorLauncher)
        sent.append(base64.b64decode(launcher._headers[0][1].removeprefix("Basic ")).decode())
    assert sent == ["adloom:before", "adloom:after"]


def test_a_place_that_was_never_found_is_an_error() -> None:
    def find() -> LakeConnection:
        raise SettingsError("ADLOOM_LAKE not set")

    with pytest.raises(SettingsError, match="ADLOOM_LAKE not set"):
        KnownConnection(find).now()


def test_the_triggerers_event_loop_never_waits_for_a_secrets_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, threads = _connection(tmp_path), []
    set_desired(connection.lake, "attribute", RunState.STOPPED, "a test", datetime(2026, 1, 1, 12, tzinfo=UTC))

    def find(_lake: object) -> LakeConnection:
        threads.append(threading.current_thread())
        return connection

    monkeypatch.setattr(supervise_trigger, "connect", find)
    limits = {"stall_after_s": 600.0, "most_restarts": 1.0, "within_s": 600.0, "first_pause_s": 0.0}

    async def first() -> Any:
        return await asyncio.wait_for(anext(aiter(SuperviseDriverTrigger("attribute", limits, 0.01).run())), 30)

    assert asyncio.run(first()).payload["action"] == "finish"
    assert threads
    assert threading.main_thread() not in threads


# The hook, and what Airflow knows of it.


def test_a_test_of_the_connection_says_what_it_found(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect()
    works, text = AdloomHook("ads").test_connection()
    assert not works
    assert "supervisord at 127.0.0.1:1: it does not answer" in text
    works, text = AdloomHook("nowhere").test_connection()
    assert not works
    assert "connection 'nowhere'" in text
    monkeypatch.setattr(hook, "connect", lambda _: _connection(tmp_path))
    assert AdloomHook("ads").test_connection() == (
        True,
        f"the lake {tmp_path}/lake is empty; drivers: deduplicate running, attribute running, measure running",
    )


def test_airflow_knows_the_connection_type() -> None:
    (entry,) = [one for one in entry_points(group="apache_airflow_provider") if one.value.startswith("ad_dags.")]
    assert entry.load() is get_provider_info
    (kind,) = [one for one in HookMetaService.hook_meta_data() if one.connection_type == "adloom"]
    assert kind.hook_class_name == f"{AdloomHook.__module__}.{AdloomHook.__qualname__}"
    assert kind.standard_fields
    assert kind.standard_fields.host
    assert kind.standard_fields.host.title == "Lake"
    assert kind.extra_fields
    assert kind.extra_fields["kafka__password"]["schema"]["format"] == "password"


def test_every_field_of_the_form_is_one_that_is_read() -> None:
    (kind,) = get_provider_info()["connection-types"]
    settings = {f"{ENV_PREFIX}{name.upper()}": "" for name in kind["conn-fields"] if name not in FIELDS}
    load_settings(None, settings)
    assert all("__" in name for name in settings)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert get_provider_info()["package-name"] == project["name"]
