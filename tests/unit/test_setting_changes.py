"""How two files of settings differ, and what a file in a release must not hold."""

from pathlib import Path

import pytest

from spark_jobs.config.differences import refuse_secrets, setting_changes
from spark_jobs.errors import SettingsError


def _file(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        pytest.param('sessionize.gap = "60s"', 'sessionize.gap = "1min"', [], id="other-words"),
        pytest.param("", 'sessionize.gap = "5min"', [], id="default-written-out"),
        pytest.param("", 'sessionize.gap = "9min"', ["sessionize.gap was 5min, is 9min"], id="added"),
        pytest.param('sessionize.gap = "9min"', "", ["sessionize.gap was 9min, is 5min"], id="taken-out"),
        pytest.param('contract.owner = "ads"', "", ["contract.owner was ads, is empty"], id="empty-default"),
        pytest.param('kafka.topics = "a,b"', 'kafka.topics = ["a", "b"]', [], id="list-as-text"),
        pytest.param(
            'source.web.fields.token = "$.a"',
            'source.web.fields.token = "$.b"',
            ["source.web.fields.token was $.a, is $.b"],
            id="mapping",
        ),
        pytest.param("", 'source.app.topics = ["x"]', ['source.app.topics was not set, is ["x"]'], id="source-added"),
        pytest.param("later.x = 1", "later.x = 2", ["later.x was 1, is 2"], id="section-of-another-release"),
        pytest.param("job.x = 1", "", ["job.x was 1, is not set"], id="setting-of-another-release"),
        pytest.param('kafka.password = "a"', 'kafka.password = "b"', [], id="secret"),
        pytest.param('later.password = "a"', "", ["later.password was **********, is not set"], id="unknown-secret"),
        pytest.param(
            'lineage.url = "http://me:hush@a"',
            'lineage.url = "http://me:hush@b"',
            ["lineage.url was http://**********@a, is http://**********@b"],
            id="address-with-a-login",
        ),
    ],
)
def test_settings_are_compared_by_their_meaning(tmp_path: Path, before: str, now: str, changes: list[str]) -> None:
    found = setting_changes(_file(tmp_path, "before", before), _file(tmp_path, "now", now))
    assert [change.describe({}) for change in found] == changes


def test_a_setting_that_the_environment_has_is_said_to_stay(tmp_path: Path) -> None:
    (change,) = setting_changes(None, _file(tmp_path, "now", 'sessionize.gap = "9min"'))
    environ = {"ADLOOM_SESSIONIZE__GAP": "1h"}
    assert change.describe(environ) == "sessionize.gap was 5min, is 9min (ADLOOM_SESSIONIZE__GAP is set here and wins)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param('kafka.password = "hush"', r"kafka\.password\. .*ADLOOM_KAFKA__PASSWORD", id="kafka"),
        pytest.param('registry.password = "hush"', r"registry\.password", id="registry"),
        pytest.param('lineage.api_key = "hush"', r"lineage\.api_key", id="lineage"),
        pytest.param(
            'kafka.options = {"ssl.key.password" = "hush"}',
            r"kafka\.options\.ssl\.key\.password\. .*ADLOOM_KAFKA__OPTIONS",
            id="option",
        ),
        pytest.param('s3.endpoint = "https://me:hush@a"', r"s3\.endpoint, an address with a user", id="address"),
    ],
)
def test_a_file_with_a_secret_is_refused_without_telling_it(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as refusal:
        refuse_secrets(_file(tmp_path, "secret", text))
    assert "hush" not in str(refusal.value)


def test_a_file_without_a_secret_may_name_where_one_is(tmp_path: Path) -> None:
    refuse_secrets(
        _file(
            tmp_path,
            "plain",
            """
            [kafka]
            username = "jobs"
            password = ""
            [kafka.options]
            "sasl.oauthbearer.token.endpoint.url" = "https://login.example.com/token"
            [source.web.fields]
            password_reset = "$.token"
            """,
        )
    )
