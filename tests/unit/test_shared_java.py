"""Which commands share Java, and who may."""

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.errors import EnvironmentMissingError
from spark_jobs.spark.java import Lifetime
from spark_jobs.spark.shared_java import folder_of_hosts, host_name

_KEPT = Settings.model_validate({"spark": {"keep_java": "1min"}})


def _name(settings: Settings = _KEPT, *, lifetime: Lifetime = Lifetime.RUN, **environment: str) -> str:
    return host_name(settings, environment, is_local=True, lifetime=lifetime)


def test_what_java_does_not_get_at_its_start_is_shared() -> None:
    patient = _KEPT.model_copy(
        update={"attribute": _KEPT.attribute.model_copy(update={"window": timedelta(minutes=7)})}
    )
    assert _name() == _name(patient) == _name(HOME="/home/somebody")


@pytest.mark.parametrize("change", [{"driver_memory": "1g"}, {"join_state": "by_key"}, {"shuffle_partitions": 4}])
def test_other_spark_settings_get_another_java(change: dict[str, object]) -> None:
    other = Settings.model_validate({"spark": {"keep_java": "1min", **change}})
    assert _name() != _name(other)


def test_other_keys_of_the_store_get_another_java() -> None:
    one, other = _name(AWS_SECRET_ACCESS_KEY="one"), _name(AWS_SECRET_ACCESS_KEY="other")  # noqa: S106
    assert len({one, other, _name()}) == 3
    assert "one" not in one


def test_jobs_do_not_share_with_short_commands() -> None:
    assert _name(lifetime=Lifetime.SERVICE) != _name()


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a short name."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.mark.usefixtures("base")
def test_the_folder_of_hosts_is_its_owners_alone() -> None:
    folder = folder_of_hosts()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    with pytest.raises(EnvironmentMissingError, match=f"{folder} must be a folder that only you can open"):
        folder_of_hosts()


def test_a_link_instead_of_the_folder_is_refused(base: Path) -> None:
    folder = folder_of_hosts()
    folder.rename(base / "moved")
    folder.symlink_to(base / "moved")
    with pytest.raises(EnvironmentMissingError, match="only you can open"):
        folder_of_hosts()


def test_a_folder_with_too_long_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 90)))
    with pytest.raises(EnvironmentMissingError, match="too long for the name of a socket"):
        folder_of_hosts()
