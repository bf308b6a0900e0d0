"""A source of Avro under a running job: schemas that are new, values that cannot be read, a registry that goes away."""

import gzip
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from spark_jobs.config.settings import load_settings
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.ingest.samples import ids_of_topics
from spark_jobs.lake.layout import Lake
from spark_jobs.places import SCHEMAS
from tests.stack.conftest import StartJob
from tests.stack.flow import send, wait_for_rows
from tests.stack.kafka import Kafka
from tests.stack.registry import Registry
from tests.support.avro_schemas import encoded
from tests.support.drivers import ADLOOM
from tests.support.lakes import read_table, rows_by_name

pytestmark = pytest.mark.stack
_FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
_OPTIONAL = {"type": ["null", "string"], "default": None}
_TIME = 1772366400000
_SETTINGS = """
[registry]
url = "{url}"
timeout = "2s"
[source.visits]
topics = ["{topic}"]
format = "avro"
event_type = "'activity'"
[source.visits.map]
event_id = "$.id"
event_time = "$.at"
user_id = "coalesce($.user, 'nobody')"
data = "$.page"
"""


def _schema(*names: str) -> dict[str, Any]:
    return {"type": "record", "name": "Visit", "fields": [*_FIELDS, *({"name": name, **_OPTIONAL} for name in names)]}


def _values(number: int, schema: dict[str, Any], ids: Sequence[str], **fields: str) -> list[bytes]:
    head = b"\0" + number.to_bytes(4, "big")
    return [head + encoded(schema, {"id": one, "at": _TIME, **fields}) for one in ids]


def _config(folder: Path, text: str) -> str:
    """Where a file of settings with that ``text`` lies now."""
    (place := folder / "adloom.toml").write_text(text, encoding="utf-8")
    return str(place)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    server = Registry(tmp_path / "registry")
    server.start()
    yield server
    server.stop()


def test_a_running_job_reads_new_schemas_and_waits_for_the_registry(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, registry: Registry, tmp_path: Path
) -> None:
    config = _config(tmp_path, _SETTINGS.format(url=registry.url, topic=topic))
    one, two, three = _schema(), _schema("user"), _schema("user", "page")
    first = registry.register("visits", one)
    send(kafka, topic, _values(first, one, ["a1", "a2"]))
    running = job("deduplicate", "--config", config, ADLOOM_KAFKA__TOPICS=None)
    wait_for_rows(lake, 2)
    # Another schema beside the first one, an id that nobody knows, and a value that ends too early.
    second = registry.register("visits", two)
    good = [*_values(second, two, ["b1", "b2"], user="u"), *_values(first, one, ["a3"])]
    send(kafka, topic, [*good, *_values(10**6, one, ["c1"]), good[0][:-1]])
    wait_for_rows(lake, 7)
    # The registry is away: what is known goes on, and what is not waits.
    third = registry.register("visits", three)
    registry.stop()
    send(kafka, topic, _values(second, two, ["b3"], user="u"))
    wait_for_rows(lake, 8)
    send(kafka, topic, _values(third, three, ["d1"], user="u", page="home"))
    assert len(read_table(lake, BRONZE_EVENTS)) == 8
    registry.start()
    wait_for_rows(lake, 9)
    assert running.process.poll() is None
    running.stop()
    rows = rows_by_name(lake, BRONZE_EVENTS)
    assert Counter(row["verdict"] for row in rows) == {"ok": 7, "unknown_schema": 1, "invalid_encoding": 1}
    users = {row["event_id"]: (row["user_id"], row["data"]) for row in rows if row["verdict"] == "ok"}
    nobody, somebody = ("nobody", None), ("u", None)
    assert users == {
        **dict.fromkeys(("a1", "a2", "a3"), nobody),
        **dict.fromkeys(("b1", "b2", "b3"), somebody),
        "d1": ("u", "home"),
    }
    assert {row["source_name"] for row in rows} == {"visits"}
    assert lake.files.names(SCHEMAS) == sorted(f"{number}.json" for number in (first, second, third))


_TENANTS = """
[source.visits]
topics = "{topic}-*.e"
compressed = true
event_type = "'activity'"
[source.visits.map]
event_id = "$.id"
event_time = "timestamp_millis($.at)"
user_id = "'u'"
"""


def test_topics_by_a_pattern_also_those_that_come_later(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    """Each is read from its beginning, by a running job too, and after a restart each goes on where it was."""
    config = _config(tmp_path, _TENANTS.format(topic=topic))
    refused = job("deduplicate", "--config", config, ADLOOM_KAFKA__TOPICS=None)
    assert refused.wait() == 1
    assert f"has no topic {topic}-*.e" in refused.output
    sent: list[str] = []

    def arrives(name: str, *ids: str) -> None:
        sent.extend(ids)
        values = [json.dumps({"id": one, "at": _TIME}).encode() for one in ids]
        send(kafka, name, [gzip.compress(value) for value in values])

    for name in (f"{topic}-a.e", f"{topic}-a.x", f"{topic}-b.e"):
        kafka.make_topic(name)
    arrives(f"{topic}-a.e", "a1", "a2")
    send(kafka, f"{topic}-a.x", [b"another"])
    running = job("deduplicate", "--config", config, ADLOOM_KAFKA__TOPICS=None)
    wait_for_rows(lake, 2)
    kafka.make_topic(f"{topic}-c.e", partitions=2)
    arrives(f"{topic}-c.e", *(f"c{number}" for number in range(10)))
    wait_for_rows(lake, 12)
    running.stop()
    arrives(f"{topic}-b.e", "b1")
    kafka.make_topic(f"{topic}-d.e")
    arrives(f"{topic}-d.e", "d1")
    again = job("deduplicate", "--config", config, ADLOOM_KAFKA__TOPICS=None)
    arrives(f"{topic}-c.e", "c10")
    wait_for_rows(lake, 15)
    again.stop()
    rows = rows_by_name(lake, BRONZE_EVENTS)
    assert sorted(row["event_id"] for row in rows) == sorted(sent)
    assert {row["verdict"] for row in rows} == {"ok"}
    looked = ids_of_topics(
        load_settings(Path(config), {"ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address}).kafka_of_sources
    )
    assert looked.keys() == {f"{topic}-{one}.e" for one in "abcd"}


_IN_HEADERS = """
[source.clicks]
topics = "{topic}"
when = "$meta.headers.ce_type = 'click'"
event_type = "'click'"
[source.clicks.map]
event_id = "$meta.headers.ce_id"
event_time = "coalesce($meta.headers.ce_time, $.at)"
user_id = "$meta.key"
impression_id = "concat_ws('/', $meta.topic, $meta.partition, $meta.offset)"
"""


def test_headers_and_keys_are_read_and_a_record_dated_in_seconds_counts_as_received_with_its_batch(
    kafka: Kafka, topic: str, job: StartJob, lake: Lake, tmp_path: Path
) -> None:
    config = _config(tmp_path, _IN_HEADERS.format(topic=topic))
    producer = Producer({"bootstrap.servers": kafka.address})
    sent, value = {"topic": topic, "partition": 0}, json.dumps({"imp": "i", "at": "2026-03-01T12:00:00Z"})
    of_type = ("ce_type", "click")
    in_headers = [of_type, ("ce_id", "e1"), ("ce_time", "2026-03-01T11:59:59.123456789Z")]
    producer.produce(**sent, value=value, key="u", headers=in_headers, timestamp=_TIME)
    # Kafka wants milliseconds. The event is no later than the record, as far as anyone knows.
    producer.produce(**sent, value=value, key=b"\xe9", headers=[of_type, ("ce_id", "e2")], timestamp=_TIME // 1000)
    producer.produce(**sent, value=value, headers=[("ce_id", "e3")])
    assert producer.flush(60) == 0
    settings = ("--config", config)
    assert job("deduplicate", *settings, ADLOOM_KAFKA__TOPICS=None, ADLOOM_JOB__TRIGGER="available_now").wait() == 0
    found = rows_by_name(lake, BRONZE_EVENTS)
    rows = sorted(found, key=lambda row: str(row["source"]))
    names = ("verdict", "event_id", "user_id", "impression_id")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("ok", "e1", "u", f"{topic}/0/0"),
        ("ok", "e2", "\xe9", f"{topic}/0/1"),
        ("no_source", None, None, None),
    ]
    assert [row["event_time"] and f"{row['event_time']:%H:%M:%S.%f}" for row in rows] == [
        "11:59:59.123456",
        "12:00:00.000000",
        None,
    ]
    assert [row["received_meta"] is None for row in rows] == [True, True, False]
    assert json.loads(rows[2]["received_meta"])["headers"] == {"ce_id": "e3"}
    environment = {**os.environ, "ADLOOM_KAFKA__BOOTSTRAP_SERVERS": kafka.address}
    checked = subprocess.run(
        [*ADLOOM, "check-events", topic, "--json", *settings],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    verdicts = {one["verdict"]: one["records"] for one in json.loads(checked.stdout)["verdicts"]}
    assert verdicts == {"ok": 2, "no_source": 1}
