"""Corrupts, truncates or deletes each kind of checkpoint file: the result is a clear error or the right rows."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.config.sections import IngestSettings
from spark_jobs.config.settings import Settings
from spark_jobs.errors import AdloomError
from spark_jobs.ingest.query import NAME as INGEST
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.places import checkpoint_key
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.reset import reset
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = pytest.mark.slow

_SETTINGS = Settings(ingest=IngestSettings.model_validate(ONE_BY_ONE))
_NOW_AND_THEN = {
    # So that a short run makes snapshots of its state too, not only logs of its changes.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
}


@pytest.fixture(scope="module")
def half_way(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A lake in the middle of a day, the source so far, and the whole source."""
    folder = tmp_path_factory.mktemp("damaged")
    whole = generate_source(folder / "whole", events=1500, seed=71, files=6)
    so_far = folder / "so-far"
    so_far.mkdir()
    for file in sorted(whole.iterdir())[:4]:
        shutil.copy2(file, so_far)
    before = {key: spark.conf.get(key, None) for key in _NOW_AND_THEN}
    for key, value in _NOW_AND_THEN.items():
        spark.conf.set(key, value)
    run_in(spark, _SETTINGS, open_lake(str(folder / "lake")), so_far, drain=False)
    for key, old in before.items():
        if old is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, old)
    return folder / "lake", so_far, whole


def _flip(file: Path) -> None:
    _uncheck(file)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def _truncate(file: Path) -> None:
    _uncheck(file)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _delete(file: Path) -> None:
    _uncheck(file)
    file.unlink()


def _uncheck(file: Path) -> None:
    """Removes Hadoop's checksum of the file, which a lake in an object store does not have."""
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


_HARMS: dict[str, Callable[[Path], None]] = {"flipped": _flip, "truncated": _truncate, "deleted": _delete}
_CHANGES = "log of changes of state"
_KINDS: dict[str, tuple[str, str]] = {
    "identity": (ATTRIBUTE, "metadata"),
    "last plan": (ATTRIBUTE, "offsets/[0-9]*"),
    "last end": (ATTRIBUTE, "commits/[0-9]*"),
    _CHANGES: (ATTRIBUTE, "state/0/0/*/*.changelog"),
    "snapshot of state": (ATTRIBUTE, "state/0/0/*/*.zip"),
    "schema of state": (ATTRIBUTE, "state/0/0/*/_metadata/schema"),
    "operators": (ATTRIBUTE, "state/0/_metadata/*"),
    "last plan of ingest": (INGEST, "offsets/[0-9]*"),
    "last end of ingest": (INGEST, "commits/[0-9]*"),
    "files taken in": (INGEST, "sources/0/[0-9]*"),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("harm", _HARMS)
@pytest.mark.parametrize("kind", _KINDS)
def test_damage_is_named_or_harmless(
    spark: SparkSession, half_way: tuple[Path, Path, Path], tmp_path: Path, kind: str, harm: str
) -> None:
    begun, so_far, whole = half_way
    # The source's place stands in the checkpoint, the lake's does not: a lake can be copied, a source cannot.
    lake = open_lake(str(tmp_path / "lake"))
    shutil.copytree(begun, lake.path, symlinks=True)
    query, pattern = _KINDS[kind]
    if kind == _CHANGES:
        _forget_snapshots(lake, query)
    file = _newest(lake, query, pattern)
    _HARMS[harm](file)
    late_comers = sorted(whole.iterdir())[4:]
    for one in late_comers:
        shutil.copy2(one, so_far)
    try:
        _run_or_reset(spark, lake, so_far, query, f"{kind} {harm}")
        assert_lake_equals_oracle(lake, whole)
    finally:
        for one in late_comers:
            (so_far / one.name).unlink()


def _forget_snapshots(lake: Lake, query: str) -> None:
    """Leaves only the change logs to restore state from, as before the first snapshot."""
    for snapshot in (lake.path / checkpoint_key(query, 1)).glob("state/*/*/*/*.zip"):
        _delete(snapshot)


def _newest(lake: Lake, query: str, pattern: str) -> Path:
    """The file of the latest batch among those that match ``pattern``."""
    found = [file for file in (lake.path / checkpoint_key(query, 1)).glob(pattern) if not file.name.startswith(".")]
    assert found, f"no {pattern}: the case would prove nothing"
    return max(found, key=lambda file: (int(file.stem) if file.stem.isdigit() else 0, str(file)))


def _run_or_reset(spark: SparkSession, lake: Lake, source: Path, query: str, case: str) -> None:
    try:
        run_in(spark, _SETTINGS, lake, source)
    except AdloomError as error:
        message = str(error)
        print(f"{case}: {type(error).__name__}: {message}")
        assert "\n" not in message
        assert query in message or "checkpoint" in message, message
    else:
        print(f"{case}: went on")
        return
    reset(OpenLake.of(lake, _SETTINGS, spark), query, source if query == INGEST else None)
    run_in(spark, _SETTINGS, lake, source)
