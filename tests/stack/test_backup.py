"""A copy is taken while both jobs run on Kafka and MinIO; the lake is lost; a new one goes on from the copy."""

from pathlib import Path

import pytest

from spark_jobs.config.sections import S3Settings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from tests.stack.conftest import StartJob
from tests.stack.flow import adloom, send
from tests.stack.jobs import start_job
from tests.stack.kafka import Kafka
from tests.stack.minio import Minio
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table

pytestmark = pytest.mark.stack


@pytest.mark.slow
def test_a_lake_that_was_lost_under_load_is_made_again_without_losing_or_repeating_a_row(
    kafka: Kafka,
    minio: Minio,
    topic: str,
    job: StartJob,
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = generate_source(tmp_path / "source", events=6_000, seed=43)
    send(kafka, topic, list(read_records(source)))
    # In small batches the three partitions are up to 48 minutes of event time apart; by default sessions tolerate 10.
    monkeypatch.setenv("ADLOOM_SESSIONIZE__WATERMARK", "2h")
    jobs = [job("deduplicate", ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER="200"), job("attribute")]
    jobs[1].wait_for_log("attribute: batch 1")
    copy, new = f"{lake.root}-copy", open_lake(f"{lake.root}-new", S3Settings(endpoint=minio.endpoint))
    for _ in range(2):
        adloom("backup", copy, "--lake", lake.root)
    assert all(one.process.poll() is None for one in jobs), "the jobs did not outlive the copying"
    assert len(read_table(lake, BRONZE_EVENTS)) < len(list(read_records(source))), "the jobs were done by then"
    for one in jobs:
        one.kill()
    lake.files.delete_folder("")
    monkeypatch.setenv("ADLOOM_KAFKA__BOOTSTRAP_SERVERS", kafka.address)
    monkeypatch.setenv("ADLOOM_KAFKA__TOPICS", topic)
    adloom("restore", copy, "--lake", new.root)
    once = {"ADLOOM_JOB__TRIGGER": "available_now", "ADLOOM_HEARTBEAT__IDLE_AFTER": "0s"}
    for name in ("deduplicate", "attribute"):
        again = start_job(name, new, tmp_path / f"{name}-again.log", environment=once)
        assert again.wait() == 0, again.output
    adloom("drain", "--lake", new.root)
    settings = Settings.model_validate({"sessionize": {"watermark": "2h"}})
    assert_lake_equals_oracle(new, source, settings)
