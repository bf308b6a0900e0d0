"""Both jobs at work on a real broker: nothing is lost, doubled or left over, however they are stopped."""

import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from spark_jobs.contract.tables import ATTRIBUTIONS, BRONZE_EVENTS, SESSIONS, SILVER_EVENTS
from spark_jobs.ingest.input_files import read_records
from spark_jobs.lake.layout import Lake
from tests.stack.conftest import StartJob
from tests.stack.flow import adloom, send, wait_for_rows
from tests.stack.jobs import LONGEST_S
from tests.stack.kafka import Kafka
from tests.support.equality import assert_lake_equals_oracle, generate_source
from tests.support.lakes import read_table
from tests.support.servers import wait_until

pytestmark = pytest.mark.stack


@pytest.mark.slow
def test_both_jobs_killed_and_started_again_give_what_the_oracle_gives(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    source = generate_source(tmp_path / "source", events=20_000, seed=12)
    records = list(read_records(source))
    small_batches = {"ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER": "3000"}
    send(kafka, topic, records[:10_000])
    deduplicate, attribute = job("deduplicate", **small_batches), job("attribute")
    deduplicate.wait_for_log("deduplicate: batch 0")
    deduplicate.kill()
    send(kafka, topic, records[10_000:])
    deduplicate = job("deduplicate", **small_batches)
    attribute.wait_for_log("attribute: batch 1")
    attribute.kill()
    attribute = job("attribute")
    wait_for_rows(lake, len(records))
    deduplicate.stop()
    attribute.stop()
    adloom("drain", "--lake", lake.root)
    assert_lake_equals_oracle(lake, source)
    sources = {row[BRONZE_EVENTS.column_names.index("source")] for row in read_table(lake, BRONZE_EVENTS)}
    assert len(sources) == len(records)
    assert {source.rpartition("/")[0] for source in sources} == {f"{topic}/{partition}" for partition in range(3)}


@pytest.mark.slow
def test_silence_ends_sessions_and_gives_up_on_clicks(kafka: Kafka, topic: str, job: StartJob, lake: Lake) -> None:
    now = datetime.now(UTC)
    short = {
        "ADLOOM_SESSIONIZE__GAP": "2s",
        "ADLOOM_SESSIONIZE__WATERMARK": "2s",
        "ADLOOM_ATTRIBUTE__WINDOW": "2s",
        "ADLOOM_ATTRIBUTE__IMPRESSION_WATERMARK": "2s",
        "ADLOOM_ATTRIBUTE__CLICK_WATERMARK": "2s",
        "ADLOOM_HEARTBEAT__IDLE_AFTER": "2s",
    }
    impression = {
        "event_type": "impression",
        "event_id": "i1",
        "event_time": (now - timedelta(seconds=1)).isoformat(),
        "user_id": "u1",
        "campaign_id": "c1",
        "ad_id": "a1",
    }
    send(kafka, topic, [json.dumps(impression).encode()])
    deduplicate, attribute = job("deduplicate", **short), job("attribute", **short)
    wait_until(lambda: len(read_table(lake, ATTRIBUTIONS)) == 1, LONGEST_S, "the impression never came out")
    wait_until(lambda: len(read_table(lake, SESSIONS)) == 1, LONGEST_S, "the session never ended")
    status = ATTRIBUTIONS.column_names.index("status")
    assert read_table(lake, ATTRIBUTIONS)[0][status] == "unclicked"
    beats = [row for row in read_table(lake, SILVER_EVENTS, heartbeats=True) if row[0] == "heartbeat"]
    last_beat = max(row[SILVER_EVENTS.column_names.index("event_time")] for row in beats)
    assert last_beat <= datetime.now(UTC).replace(tzinfo=None), "a heartbeat may not run ahead of the clock"
    deduplicate.stop()
    attribute.stop()


@pytest.mark.slow
def test_a_second_driver_is_refused_and_a_second_signal_breaks_off_without_loss(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    source = generate_source(tmp_path / "source", events=2000, seed=13)
    records = list(read_records(source))
    send(kafka, topic, records)
    first = job("deduplicate", ADLOOM_KAFKA__MAX_OFFSETS_PER_TRIGGER="300")
    first.wait_for_log("deduplicate: batch 1")
    second = job("deduplicate")
    assert second.wait() == 1
    assert "is being run by adloom, process" in second.output.strip().splitlines()[-1]
    first.signal(signal.SIGTERM)
    first.wait_for_log("stopping")
    first.signal(signal.SIGTERM)
    assert first.wait() in (0, 143), first.output  # 0 if the batches were done before the second signal came
    assert job("deduplicate", ADLOOM_JOB__TRIGGER="available_now").wait() == 0
    assert job("attribute", ADLOOM_JOB__TRIGGER="available_now").wait() == 0
    adloom("drain", "--lake", lake.root)
    assert_lake_equals_oracle(lake, source)


@pytest.mark.slow
def test_on_the_way_to_gold_a_query_follows_the_one_before_it_and_others_wait_for_the_interval(
    kafka: Kafka, topic: str, job: StartJob, tmp_path: Path
) -> None:
    records = list(read_records(generate_source(tmp_path / "source", events=2000, seed=15)))
    send(kafka, topic, records[:1000])
    assert job("deduplicate", ADLOOM_JOB__TRIGGER="available_now").wait() == 0
    gold = job("attribute", ADLOOM_JOB__TRIGGER="interval", ADLOOM_JOB__TRIGGER_INTERVAL="1000d")
    gold.wait_for_log("attribute: batch 0")
    gold.wait_for_log("sessionize: batch 0")
    send(kafka, topic, records[1000:])
    assert job("deduplicate", ADLOOM_JOB__TRIGGER="available_now").wait() == 0
    gold.wait_for_log("attribute: batch 1")
    gold.stop()
    assert "sessionize: batch 1" not in gold.output


def test_records_of_a_transaction_that_was_broken_off_are_not_read(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    records = list(read_records(generate_source(tmp_path / "source", events=20, seed=16)))[:10]
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions(60)
    for part, ends in ((records[:5], producer.abort_transaction), (records[5:], producer.commit_transaction)):
        producer.begin_transaction()
        for record in part:
            producer.produce(topic, record, partition=0)
        producer.flush(60)
        ends(60)
    assert job("deduplicate", ADLOOM_JOB__TRIGGER="available_now").wait() == 0
    raw = BRONZE_EVENTS.column_names.index("raw")
    assert sorted(row[raw].encode() for row in read_table(lake, BRONZE_EVENTS)) == sorted(records[5:])


def test_records_that_are_gone_stop_the_job_with_the_reason_in_the_last_line(
    kafka: Kafka, topic: str, job: StartJob, tmp_path: Path
) -> None:
    records = list(read_records(generate_source(tmp_path / "source", events=3000, seed=14)))
    send(kafka, topic, records[:1500])
    assert job("deduplicate", ADLOOM_JOB__TRIGGER="available_now").wait() == 0
    send(kafka, topic, records[1500:])
    for partition in range(3):
        kafka.delete_records(topic, partition, before=800)
    refused = job("deduplicate", ADLOOM_JOB__TRIGGER="available_now")
    assert refused.wait() == 1
    last_line = refused.output.strip().splitlines()[-1]
    assert "query ingest failed: records are gone from Kafka" in last_line
    assert "set kafka.fail_on_data_loss to false" in last_line
    report = refused.report("ingest")
    assert report is not None
    assert report.state == "failed"
    assert "records are gone from Kafka" in (report.last_error or "")
    allowed = job("deduplicate", ADLOOM_JOB__TRIGGER="available_now", ADLOOM_KAFKA__FAIL_ON_DATA_LOSS="false")
    assert allowed.wait() == 0, allowed.output


def test_what_is_wrong_with_the_source_is_one_line_without_the_password(
    topic: str, job: StartJob, kafka: Kafka
) -> None:
    canary = "canary-4711"
    login = {
        "ADLOOM_KAFKA__SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "ADLOOM_KAFKA__USERNAME": "adloom",
        "ADLOOM_KAFKA__PASSWORD": canary,
    }
    for settings, message in (
        ({"ADLOOM_KAFKA__TOPICS": "nowhere"}, "has no topic nowhere"),
        ({"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1"}, "does not answer"),
        (login, "does not answer as SASL_PLAINTEXT"),
        ({"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": ""}, "give --source DIR"),
    ):
        refused = job("deduplicate", **settings)
        assert refused.wait() == 1
        last_line = refused.output.strip().splitlines()[-1]
        assert last_line.startswith("error: ")
        assert message in last_line
        assert canary not in refused.output
    assert topic in kafka.topics()
