"""The arguments of spark-submit: master, name, jars, and nothing secret."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from spark_jobs.cli import submit as module
from spark_jobs.cli.submit import submit
from spark_jobs.errors import EnvironmentMissingError, SettingsError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.operations.releases import deploy, settings_of_job
from spark_jobs.spark.names import application_name
from spark_jobs.streams.desired_state import clear_stop_request, request_stop, stop_requested_at
from tests.support.releases import publish_fake

_KUBERNETES = "k8s://https://127.0.0.1:6443"
Words = Callable[[], list[str]]


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Words:
    """The arguments passed to spark-submit, which fails if there is a file ``broken``."""
    program, words = tmp_path / "spark" / "bin" / "spark-submit", tmp_path / "words.json"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"if os.path.exists({str(tmp_path / 'broken')!r}):\n"
        "    sys.exit('Exception in thread main: broken\\n at a\\nCaused by: no such queue\\n ... 21 more')\n"
        f"with open({str(words)!r}, 'w') as file: json.dump(sys.argv[1:], file)\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(module, "_spark", lambda: tmp_path / "spark")
    # No store answers here, so in a bucket no release is deployed and nobody has asked for anything.
    for function in (settings_of_job, clear_stop_request):
        monkeypatch.setattr(module, function.__name__, partial(_if_local, function))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    monkeypatch.setenv("ADLOOM_KAFKA__PASSWORD", "canary-password")
    return lambda: json.loads(words.read_text())


def _if_local(function: Callable[[Lake, str], object], lake: Lake, job: str) -> object:
    return function(lake, job) if lake.is_local else None


def _submit(master: str, location: str, *, properties: Path | None = None) -> None:
    submit("attribute", location, master=master, source=None, config=None, properties=properties)


def _conf(words: list[str]) -> dict[str, str]:
    pairs = [words[place + 1] for place, word in enumerate(words) if word == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def test_yarn_is_given_the_jars_and_one_try(arguments: Words, tmp_path: Path) -> None:
    _submit("yarn", str(tmp_path / "lake"))
    words, conf = arguments(), _conf(arguments())
    name = application_name((tmp_path / "lake").as_uri(), "attribute")
    assert words[:6] == ["--master", "yarn", "--deploy-mode", "cluster", "--name", name]
    assert (conf["spark.yarn.tags"], conf["spark.yarn.maxAppAttempts"]) == (name, "1")
    assert conf["spark.jars"].startswith("file:///")
    assert "delta-spark" in conf["spark.jars"]
    assert not [key for key in conf if key.startswith("spark.kubernetes.")]
    assert words[-5:-3] == [str(module._DRIVER), "driver"]
    assert words[-3:] == ["attribute", "--lake", str(tmp_path / "lake")]


@pytest.mark.usefixtures("arguments")
def test_what_an_earlier_driver_was_asked_does_not_reach_the_new_one(tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    request_stop(lake, "attribute", datetime(2026, 1, 1, tzinfo=UTC))
    _submit("yarn", str(tmp_path / "lake"))
    assert stop_requested_at(lake, "attribute") is None


def test_kubernetes_is_given_names_and_what_lies_in_the_image(arguments: Words) -> None:
    _submit(_KUBERNETES, "s3a://ads/lake")
    words, conf = arguments(), _conf(arguments())
    name = application_name("s3a://ads/lake", "attribute")
    assert conf["spark.kubernetes.driver.pod.name"] == name
    assert conf["spark.jars"].startswith("local:///")
    assert not [key for key in conf if key.startswith("spark.yarn.")]
    assert f"local://{module._DRIVER}" in words


@pytest.mark.parametrize("master", ["yarn", _KUBERNETES])
def test_no_key_is_sent(arguments: Words, master: str) -> None:
    _submit(master, "s3a://ads/lake")
    assert "canary" not in json.dumps(arguments())


def test_properties_go_before_what_adloom_would_say(arguments: Words, tmp_path: Path) -> None:
    properties = tmp_path / "cluster.conf"
    properties.write_text("# ours\nspark.driver.memory=5g\nspark.kubernetes.namespace   ads\n\n")
    _submit(_KUBERNETES, "s3a://ads/lake", properties=properties)
    assert arguments()[6:8] == ["--properties-file", str(properties)]
    assert "spark.driver.memory" not in _conf(arguments())
    with pytest.raises(SettingsError, match=r"nowhere\.conf cannot be read"):
        _submit(_KUBERNETES, "s3a://ads/lake", properties=tmp_path / "nowhere.conf")


def test_a_cluster_is_asked_for_the_memory_that_the_release_says(arguments: Words, tmp_path: Path) -> None:
    lake = open_lake(str(tmp_path / "lake"))
    publish_fake(lake, tmp_path, "1.0.0", '[spark]\ndriver_memory = "7g"\n')
    deploy(lake, "attribute", "1.0.0", datetime.now(UTC))
    _submit("yarn", str(tmp_path / "lake"))
    assert _conf(arguments())["spark.driver.memory"] == "7g"


@pytest.mark.parametrize("master", ["local[*]", "spark://127.0.0.1:7077", "", "yarn; touch pwned"])
def test_what_runs_no_drivers_is_refused(arguments: Words, master: str) -> None:
    with pytest.raises(SettingsError, match="cannot run drivers"):
        _submit(master, "s3a://ads/lake")
    with pytest.raises(FileNotFoundError):
        arguments()


def test_what_spark_submit_says_last_is_the_error(arguments: Words, tmp_path: Path) -> None:
    del arguments
    (tmp_path / "broken").touch()
    with pytest.raises(EnvironmentMissingError, match=r"ended with 1: no such queue$"):
        _submit("yarn", "s3a://ads/lake")


def test_names_are_told_apart_by_lake_and_job() -> None:
    names = {application_name(root, job) for root in ("s3a://a", "s3a://b") for job in ("deduplicate", "attribute")}
    assert len(names) == 4
    assert all(len(name) < 63 and name.replace("-", "").isalnum() and name == name.lower() for name in names)
