"""Files in the object store as a source: found below a prefix, each read once, by a job and by a run."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.contract.tables import BRONZE_EVENTS, SILVER_EVENTS
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.lake.store.arrow import s3_filesystem
from tests.stack.conftest import StartJob
from tests.stack.flow import adloom, wait_for_rows
from tests.stack.minio import Minio
from tests.support.lakes import read_table, rows_by_name

pytestmark = pytest.mark.stack
_SETTINGS = """
[source.delivered]
path = "s3://stack/{folder}"
files = "**/firehose-*"
event_type = "'activity'"
map = {{ event_id = "$.id", event_time = "timestamp_seconds($.ts)", user_id = "$.user" }}
[source.daily]
path = "s3://stack/{folder}"
files = "dt=*/*.parquet"
format = "parquet"
event_type = "'activity'"
map = {{ event_id = "$.id", event_time = "timestamp_seconds($.ts)", user_id = "$.user" }}
"""


def _rows(*ids: str) -> list[dict[str, object]]:
    return [{"id": one, "ts": 1772366400 + number, "user": f"u-{one}"} for number, one in enumerate(ids)]


def _put(minio: Minio, key: str, content: bytes) -> None:
    with s3_filesystem(S3Settings(endpoint=minio.endpoint)).open_output_stream(f"stack/{key}") as out:
        out.write(content)


def _parquet(*ids: str) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(_rows(*ids)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def test_files_in_the_store_are_read_once_by_a_running_job(
    minio: Minio, lake: Lake, job: StartJob, tmp_path: Path
) -> None:
    folder, config = "in/running", tmp_path / "adloom.toml"
    config.write_text(_SETTINGS.format(folder=folder), encoding="utf-8")
    _put(minio, f"{folder}/2026/03/01/firehose-1", "".join(map(json.dumps, _rows("a", "b"))).encode())
    _put(minio, f"{folder}/2026/03/01/firehose-2", gzip.compress(json.dumps(_rows("c"), indent=1).encode()))
    _put(minio, f"{folder}/dt=2026-03-01/one.parquet", _parquet("d", "e"))
    _put(minio, f"{folder}/dt=2026-03-01/other.txt", b"nobody means it")
    # The rights that `adloom init` gives end with the lake.
    no_kafka = {"ADLOOM_KAFKA__TOPICS": None, "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": None}
    job("deduplicate", "--config", str(config), **no_kafka, ADLOOM_S3__PROFILE=None, **minio.settings())
    wait_for_rows(lake, 5)
    _put(minio, f"{folder}/2026/03/02/firehose-3", json.dumps(_rows("f")[0]).encode() + b'\n{"id": "cut o')
    _put(minio, f"{folder}/dt=2026-03-02/broken.parquet", _parquet("g")[:-9])
    wait_for_rows(lake, 8)
    rows = rows_by_name(lake, BRONZE_EVENTS)
    assert Counter((row["verdict"], row["source_name"]) for row in rows) == {
        ("ok", "delivered"): 4,
        ("ok", "daily"): 2,
        ("malformed_json", "delivered"): 1,
        ("invalid_encoding", "daily"): 1,
    }
    assert all(row["source"].startswith(f"s3a://stack/{folder}/") for row in rows)


@pytest.mark.slow
def test_a_run_reads_the_store_into_a_lake_on_a_disk(minio: Minio, tmp_path: Path) -> None:
    folder, config, lake = "in/run", tmp_path / "adloom.toml", tmp_path / "lake"
    config.write_text(_SETTINGS.format(folder=folder), encoding="utf-8")
    _put(minio, f"{folder}/firehose-1", "\n".join(map(json.dumps, _rows(*map(str, range(999))))).encode())
    _put(minio, f"{folder}/dt=1/a.parquet", _parquet("a"))
    for _ in range(2):
        adloom("run", "--lake", str(lake), "--config", str(config), "--drain")
    assert len(read_table(open_lake(str(lake)), SILVER_EVENTS)) == 1000
    own = {"event_type": "activity", "event_id": "own", "event_time": "2026-03-01T12:00:00Z", "user_id": "u"}
    _put(minio, "in/own/a.jsonl", json.dumps(own).encode())
    adloom("run", "--lake", str(tmp_path / "own"), "--source", "s3://stack/in/own")
    assert [row["event_id"] for row in rows_by_name(open_lake(str(tmp_path / "own")), SILVER_EVENTS)] == ["own"]
