"""Repairs and the ledger while all three jobs run, on real servers, with the rights of the jobs."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import LATE_EVENTS, RESTATEMENTS, SILVER_EVENTS
from spark_jobs.generator.generate import generate
from spark_jobs.generator.spec import GeneratorSpec
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.ledger_files import last_ledger
from spark_jobs.ledger.model import RecordKind
from spark_jobs.places import REPAIRS
from spark_jobs.restatements.plan import RepairPlan, done_key, plan_key
from tests.stack.conftest import JOBS_USER, StartJob
from tests.stack.flow import adloom, send, wait_for_rows
from tests.stack.jobs import LONGEST_S
from tests.stack.kafka import Kafka
from tests.support.drivers import ADLOOM
from tests.support.lakes import GOLD, read_table
from tests.support.oracle import assert_same_rows, expected_tables
from tests.support.source_files import read_files

pytestmark = [pytest.mark.stack, pytest.mark.slow]
_PIECE = 1000
_REPAIRED_AT = (4 * _PIECE, 6 * _PIECE)
_JOBS = ("deduplicate", "attribute", "measure")


@pytest.mark.timeout(1800)
def test_repairs_beside_the_jobs_correct_gold_and_disturb_nothing(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    generate(GeneratorSpec(events=8000, seed=71, files=1, late=0.05, duplicates=0.02, malformed=0.01), source)
    (records,) = read_files(source)
    jobs = [job(name) for name in _JOBS]
    for first in range(0, len(records), _PIECE):
        send(kafka, topic, records[first : first + _PIECE])
        if first in _REPAIRED_AT:
            _as_the_jobs("repair", lake)
        # What comes later is then late for those that went on.
        wait_for_rows(lake, min(first + _PIECE, len(records)))
        _as_the_jobs("ledger", lake)
    while_running = _plans(lake)
    assert sum(plan.changes for plan in while_running) > 0, "no repair changed a row: the test shows nothing"
    assert [one.process.poll() for one in jobs] == [None] * len(jobs), [one.output for one in jobs]
    for one in jobs:
        one.stop()
    adloom("drain", "--lake", lake.root)
    _as_the_jobs("repair", lake)
    _as_the_jobs("ledger", lake)
    expected = expected_tables(source, Settings(), datetime.now(UTC))
    for table in GOLD:
        assert_same_rows(read_table(lake, table), expected.rows(table), table)
    late = [row[:2] for row in read_table(lake, LATE_EVENTS)]
    silver = [row[:2] for row in read_table(lake, SILVER_EVENTS)]
    due = {row[:2] for row in expected.rows(SILVER_EVENTS)}
    assert len(late) == len(set(late))
    assert set(late) == due - set(silver)
    ledger = last_ledger(lake)
    assert ledger
    assert (ledger.rows(RecordKind.RECEIVED), ledger.rows(RecordKind.KEPT)) == (len(records), len(silver))
    assert (ledger.rows(RecordKind.LATE_AWAITING), ledger.rows(RecordKind.LATE_PENDING)) == (0, 0)
    assert ledger.rows(RecordKind.LATE_REPAIRED) >= len(late)
    assert len(read_table(lake, RESTATEMENTS)) >= sum(plan.changes for plan in while_running) // 2


def _as_the_jobs(command: str, lake: Lake) -> None:
    """Runs a command with their keys. It must end well: the ledger only does if it balances."""
    done = subprocess.run(
        [*ADLOOM, command, "--lake", lake.root],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
        env={**os.environ, "ADLOOM_S3__PROFILE": JOBS_USER, "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _plans(lake: Lake) -> list[RepairPlan]:
    numbers = [number for number in lake.numbers(REPAIRS) if lake.files.read(done_key(number))]
    texts = [lake.files.read(plan_key(number)) for number in numbers]
    return [RepairPlan.model_validate_json(text) for text in texts if text]
