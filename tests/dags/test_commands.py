"""Commands that tasks run: their arguments arrive unchanged, Airflow's secrets do not, their outcome is reported."""

import logging
from pathlib import Path

import pytest

from ad_dags.commands import CommandError, environment_of_commands, run_adloom
from ad_dags.connection.lake_connection import LakeConnection
from ad_dags.drivers.launchers.supervisor import SupervisorLauncher
from spark_jobs.config.settings import Settings
from spark_jobs.lake.open import open_lake

_ECHO = """#!/bin/sh
for argument in "$@"; do printf '<%s>\\n' "$argument"; done
printf 'supervisor [%s]\\n' "$ADLOOM_SUPERVISOR_PASSWORD"
[ "$1" = fail ] && { printf '\\033[31merror:\\033[0m it is broken\\n' >&2; exit 3; }
exit 0
"""
_NASTY = ["a b", "$(touch pwned)", "`id`", "; rm -rf /", "--jars", "--conf", "../..", "x\ny", "*", "'", '"']


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeConnection:
    program = tmp_path / "adloom"
    program.write_text(_ECHO)
    program.chmod(0o755)
    monkeypatch.setenv("ADLOOM_COMMAND", str(program))
    monkeypatch.setenv("ADLOOM_SUPERVISOR_PASSWORD", "hush")
    lake = open_lake(str(tmp_path / "lake"))
    return LakeConnection(
        str(tmp_path / "lake"), Path("a.toml"), Settings(), lake, SupervisorLauncher("127.0.0.1:1", "hush")
    )


def test_arguments_reach_the_command_unchanged(connection: LakeConnection, tmp_path: Path) -> None:
    _, output = run_adloom(connection, ["echo", *_NASTY])
    expected = ["echo", *_NASTY, "--lake", connection.location, "--config", "a.toml"]
    assert output == "\n".join([*(f"<{argument}>" for argument in expected), "supervisor []"])
    assert not (tmp_path / "pwned").exists()


def test_a_failure_is_reported_in_one_line(connection: LakeConnection, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO),
        pytest.raises(CommandError, match=r"^adloom fail ended with exit code 3: error: it is broken$"),
    ):
        run_adloom(connection, ["fail"])
    assert "error: it is broken" in caplog.text
    assert run_adloom(connection, ["fail"], allowed=(0, 3))[0] == 3


def test_airflows_own_secrets_are_not_passed_on() -> None:
    environment = {
        "AIRFLOW__API_AUTH__JWT_SECRET": "x",
        "AIRFLOW_CONN_POSTGRES": "x",
        "ADLOOM_SUPERVISOR_PASSWORD": "x",
        "ADLOOM_ALERT_URL": "x",
        "ADLOOM_AIRFLOW_TOKEN": "x",
        "ADLOOM_RELEASE_KEY": "x",
        "ADLOOM_SUPERVISOR_PASSWORD_FILE": "x",
        "DATABASE_PASSWORD": "x",
        "AWS_ACCESS_KEY_ID": "key",
        "ADLOOM_LAKE": "lake",
        "PATH": "/bin",
        "JAVA_HOME": "/java",
        "https_proxy": "http://proxy:3128",  # a first start fetches jars
        "NO_PROXY": "minio",
    }
    kept = {"AWS_ACCESS_KEY_ID", "ADLOOM_LAKE", "PATH", "JAVA_HOME", "https_proxy", "NO_PROXY", "COLUMNS"}
    assert environment_of_commands(environment).keys() == kept


@pytest.mark.parametrize(("changes_lake", "profile"), [(False, "adloom-airflow"), (True, "adloom-jobs")])
def test_commands_that_change_the_lake_use_the_keys_of_the_jobs(
    connection: LakeConnection, monkeypatch: pytest.MonkeyPatch, *, changes_lake: bool, profile: str
) -> None:
    program = connection.lake.path.parent / "adloom"
    program.write_text('#!/bin/sh\necho "$ADLOOM_S3__PROFILE"\n')
    monkeypatch.setenv("ADLOOM_S3__PROFILE", "adloom-airflow")
    monkeypatch.setenv("ADLOOM_MAINTENANCE_PROFILE", "adloom-jobs")
    assert run_adloom(connection, ["maintain"], changes_lake=changes_lake)[1] == profile
