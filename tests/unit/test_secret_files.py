"""Secrets in files, as Docker, Kubernetes and agents keep them: read at each start, shown nowhere."""

from pathlib import Path

import pytest

from spark_jobs.config.secret_files import value_of
from spark_jobs.config.settings import load_settings
from spark_jobs.errors import SettingsError

_CANARY = "canary-3f10"


@pytest.mark.parametrize(
    ("variable", "section", "setting"),
    [
        ("ADLOOM_KAFKA__PASSWORD_FILE", "kafka", "password"),
        ("ADLOOM_REGISTRY__PASSWORD_FILE", "registry", "password"),
        ("ADLOOM_LINEAGE__API_KEY_FILE", "lineage", "api_key"),
    ],
)
def test_a_secret_is_read_from_its_file_at_each_start(
    tmp_path: Path, variable: str, section: str, setting: str
) -> None:
    file = tmp_path / "secret"
    user = {"ADLOOM_REGISTRY__USERNAME": "jobs"} if section == "registry" else {}
    for text in (_CANARY, "rotated"):
        file.write_text(f"{text}\n")
        found = getattr(load_settings(None, {variable: str(file), **user}), section)
        assert getattr(found, setting).get_secret_value() == text
        assert text not in repr(found)


def test_a_setting_that_is_a_file_itself_stays_one(tmp_path: Path) -> None:
    found = load_settings(None, {"ADLOOM_S3__CA_FILE": str(tmp_path / "ca.pem")})
    assert found.s3.ca_file == tmp_path / "ca.pem"


def test_an_empty_variable_is_as_good_as_none_where_compose_passes_it_on(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(_CANARY)
    both = {"ADLOOM_KAFKA__PASSWORD": "", "ADLOOM_KAFKA__PASSWORD_FILE": str(tmp_path / "secret")}
    for given in (both, dict(reversed(both.items()))):
        assert load_settings(None, given).kafka.password.get_secret_value() == _CANARY
    assert load_settings(None, {"ADLOOM_KAFKA__PASSWORD": "own", "ADLOOM_KAFKA__PASSWORD_FILE": ""}).kafka.password


def test_what_is_wrong_is_said_without_the_secret(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"A_FILE names .*nowhere, which cannot be read: No such file.*check path"):
        value_of({"A_FILE": str(tmp_path / "nowhere")}, "A")
    with pytest.raises(SettingsError, match="which cannot be read: it is no text"):
        value_of({"A_FILE": str(tmp_path / "binary")}, "A")
    with pytest.raises(SettingsError, match="A and A_FILE are both set; leave out one") as both:
        value_of({"A": _CANARY, "A_FILE": str(tmp_path / "binary")}, "A")
    assert _CANARY not in str(both.value)
