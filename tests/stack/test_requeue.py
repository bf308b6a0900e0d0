"""Requeues while records keep coming, on a real broker and a real object store, with the rights of the jobs."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from tests.stack.conftest import JOBS_USER, StartJob
from tests.stack.flow import adloom, send
from tests.stack.jobs import LONGEST_S
from tests.stack.kafka import Kafka
from tests.support.drivers import ADLOOM
from tests.support.lakes import read_ledger, read_table
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.servers import wait_until
from tests.support.source_files import read_files, write_files

pytestmark = [pytest.mark.stack, pytest.mark.slow]
_LIMIT = 1024
_PATIENT = {"ADLOOM_ATTRIBUTE__IMPRESSION_WATERMARK": "3h", "ADLOOM_SESSIONIZE__WATERMARK": "3h"}


def test_what_is_requeued_while_records_come_is_there_once_and_the_job_goes_on(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    generate(GeneratorSpec(events=6000, seed=61, files=1, late=0, malformed=0, hours=2), own)
    # A click is too large for the running job, and small enough for everybody else.
    records = [_wide(record) if b'"click"' in record else record for record in read_files(own)[0]]
    source = write_files(tmp_path / "source", [records])
    clicks = sum(len(record) > _LIMIT for record in records)
    for name, value in _PATIENT.items():
        monkeypatch.setenv(name, value)
    send(kafka, topic, records[:3000])
    deduplicate = job("deduplicate", ADLOOM_INGEST__MAX_RECORD_BYTES=str(_LIMIT))
    _wait_for_received(lake, 3000)
    first, second = _requeue(lake), _requeue(lake)
    send(kafka, topic, records[3000:])
    outputs = [one.communicate(timeout=LONGEST_S)[0] for one in (first, second)]
    codes = [one.returncode for one in (first, second)]
    assert 0 in codes, outputs
    assert all(not code or "is at work in" in output for code, output in zip(codes, outputs, strict=True)), outputs
    _wait_for_received(lake, len(records))
    last = _requeue(lake)
    output, _ = last.communicate(timeout=LONGEST_S)
    assert last.returncode == 0, output
    deduplicate.stop()
    adloom("drain", "--lake", lake.root)
    expected = expected_tables(source, Settings(), datetime.now(UTC))
    for table in (SILVER_EVENTS, ATTRIBUTIONS, SESSIONS):
        assert_same_rows(read_table(lake, table), expected.rows(table), table)
    ledger = read_ledger(lake)
    assert (ledger.received, ledger.requeued, ledger.quarantined) == (len(records), clicks, {})


def _wide(record: bytes) -> bytes:
    return record[:1] + b" " * _LIMIT + record[1:]


def _wait_for_received(lake: Lake, rows: int) -> None:
    requeued_from = BRONZE_EVENTS.column_names.index("requeued_from")

    def is_there() -> bool:
        return sum(row[requeued_from] is None for row in read_table(lake, BRONZE_EVENTS)) == rows

    wait_until(is_there, LONGEST_S, f"bronze never had {rows} rows as received")


def _requeue(lake: Lake) -> "subprocess.Popen[str]":
    keys = {"ADLOOM_S3__PROFILE": JOBS_USER, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    return subprocess.Popen(
        [*ADLOOM, "requeue", "--lake", lake.root],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **keys},
    )
