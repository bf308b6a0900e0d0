"""Decoding in Spark's workers: a schema that is new within a batch, verdicts, a registry that comes and goes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.sections import RegistrySettings
from spark_jobs.formats.decoding import decoder
from spark_jobs.formats.schema_store import SchemaStore
from spark_jobs.ingest.decode import decode, raw_text
from spark_jobs.ingest.schemas import FilesOfLake
from spark_jobs.spark.failures import reason
from tests.support.avro_schemas import encoded
from tests.support.fake_registry import FakeRegistry

_EVENT = {"type": "record", "name": "E", "fields": [{"name": "id", "type": "string"}]}
_LATER = {**_EVENT, "fields": [*_EVENT["fields"], {"name": "n", "type": "long"}]}
_CANARY = "canary-9a41-password-of-registry"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry().running() as running:
        running.add(1, _EVENT)
        running.add(2, _LATER)
        yield running


def _framed(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value


def _records(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    rows = [(number, value) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, "number INT, value BINARY").coalesce(1)


def _decoded(records: DataFrame, registry: FakeRegistry, lake: Path, **settings: Any) -> DataFrame:
    used = RegistrySettings(url=(registry.url,), **settings)
    decoders = {"t": decoder("avro", schemas=SchemaStore(used, FilesOfLake(str(lake))))}
    return decode(records.withColumn("origin", F.lit("t")), decoders)


def test_schemas_are_fetched_in_the_middle_of_a_batch_and_bad_values_get_verdicts(
    spark: SparkSession, registry: FakeRegistry, tmp_path: Path
) -> None:
    one, two = encoded(_EVENT, {"id": "ü"}), encoded(_LATER, {"id": "b", "n": 7})
    values = [_framed(1, one), _framed(2, two), None, _framed(3, one), b"{}", _framed(1, one)[:-1], _framed(1, one)]
    found = _decoded(_records(spark, values), registry, tmp_path).collect()
    assert [row["number"] for row in found] == list(range(7))
    shown, later = '{"id":"ü"}', '{"id":"b","n":7}'
    assert [row["text"] for row in found] == [shown, later, None, None, None, None, shown]
    verdicts = [None, None, None, "unknown_schema", "invalid_encoding", "invalid_encoding", None]
    assert [row["decode_verdict"] for row in found] == verdicts
    assert [bool(row["decode_reason"]) for row in found] == [bool(verdict) for verdict in verdicts]
    assert sorted(registry.asked) == ["/schemas/ids/1", "/schemas/ids/2", "/schemas/ids/3"]
    assert sorted(file.name for file in (tmp_path / "_schemas").iterdir()) == ["1.json", "2.json"]


def test_raw_restores_the_record(spark: SparkSession) -> None:
    records = _records(spark, [bytes(range(256)), b""])
    found = records.select(raw_text(records["value"]).alias("raw")).collect()
    assert [row["raw"].encode("iso-8859-1") for row in found] == [bytes(range(256)), b""]


def test_a_registry_that_is_away_delays_the_batch_and_then_fails_it(
    spark: SparkSession, registry: FakeRegistry, tmp_path: Path
) -> None:
    records = _records(spark, [_framed(1, encoded(_EVENT, {"id": "a"}))])
    registry.failures = [(503, {}), (429, {})]
    assert [row["text"] for row in _decoded(records, registry, tmp_path / "one").collect()] == ['{"id":"a"}']
    registry.failures = [(503, {})] * 9
    with pytest.raises(PySparkException, match=r"schema registry has been away for .*nothing is lost") as error:
        _decoded(records, registry, tmp_path / "two", patience="1s").collect()
    assert "RegistryError: the schema registry has been away" in reason(str(error.value))


def test_the_password_travels_and_is_shown_nowhere(spark: SparkSession, registry: FakeRegistry, tmp_path: Path) -> None:
    records = _records(spark, [_framed(1, encoded(_EVENT, {"id": "a"}))])
    decoded = _decoded(records, registry, tmp_path, username="jobs", password=SecretStr(_CANARY))
    assert decoded.count() == 1
    assert registry.logins == [f"jobs:{_CANARY}"]
    shown = decoded._jdf.queryExecution().toString() + str(spark.sparkContext.getConf().getAll())
    assert _CANARY not in shown


def test_text_that_is_much_longer_than_its_bytes_goes_back_in_parts(
    spark: SparkSession, registry: FakeRegistry, tmp_path: Path
) -> None:
    wide = {
        "type": "record",
        "name": "W",
        "fields": [{"name": f"{n}".zfill(900), "type": "boolean"} for n in range(900)],
    }
    registry.add(4, wide)
    values: list[bytes | None] = [_framed(4, bytes(900))] * 60
    found = _decoded(_records(spark, values), registry, tmp_path)
    lengths = found.selectExpr("count(DISTINCT number) AS n", "min(length(text)) AS m").collect()
    assert [tuple(row) for row in lengths] == [(60, 900 * 909 + 1)]
