"""``adloom check-events`` judges without Spark: it gives each record the verdict that a run gives it."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_jobs.config.durations import EPOCH
from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import FIELDS, kept_columns
from spark_jobs.contract.events import MALFORMED_JSON, OK
from spark_jobs.contract.nobody import NOBODY
from spark_jobs.ingest.in_python.judge import Judge, Judgement
from spark_jobs.ingest.judge import judge
from tests.support.foreign import SOURCE, foreign
from tests.support.mappings import records as random_records
from tests.support.verdict_cases import VERDICT_CASES
from tests.support.verdicts import judge as verdict_of

_RECEIVED = datetime(2026, 8, 1, tzinfo=UTC)
_OTHER = {
    "event_type": "coalesce($.b, 'activity')",
    "may_lack": "user_id",
    "unknown": "quarantine",
    "map": {"event_id": "$.a", "event_time": "timestamp_millis($.n)", "user_id": "$.l[0]", "data": "$"},
    "keep": {"number": {"from": "$.a.b", "type": "decimal"}, "flag": {"from": "$.l[1].b", "type": "boolean"}},
}
_EITHER = Settings.model_validate({"source": {"ads": SOURCE, "other": _OTHER}})
_OWN = Settings()
_EVENTS: list[dict[str, Any]] = [
    {"event_type": "impression", "event_id": "i", "event_time": "2026-01-01T12:00:00Z", "user_id": "u"}
    | {"campaign_id": "c", "ad_id": "a", "cost_micros": 5},
    {"event_type": "click", "event_id": "k", "event_time": "2026-01-01T12:00:01Z", "user_id": "u"}
    | {"impression_id": "i", "ip": "192.0.2.7", "user_agent": "Mozilla/5.0 (X11; Linux x86_64)"},
    {"event_type": "activity", "event_id": "v", "event_time": "2026-01-01T12:00:02Z", "user_id": "u", "is_last": True},
    {"event_type": "conversion", "event_id": "p", "event_time": "2026-01-01T12:00:03Z", "user_id": "u"}
    | {"conversion_type": "purchase", "value_micros": 7, "currency": "EUR", "order_id": "o", "revokes": "q"},
]
_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**18,
    10**19,
    "",
    " ",
    "x" * 129,
    "1",
    "no",
    {},
    [],
    {"b": 1},
    "2026-01-01T00:00:00Z",
)

run_rarely = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def _by_spark(
    spark: SparkSession, records: list[bytes], chosen: Settings, folder: Path, origin: str | None = None
) -> dict[bytes, dict[str, Row]]:
    file = folder / f"records-{abs(hash(tuple(records)))}.jsonl"
    file.write_bytes(b"\n".join(records))
    received = F.lit(_RECEIVED)
    lines = (
        spark.read.option("lineSep", "\n")
        .text(str(file))
        .select(
            F.col("value").alias("raw"),
            F.hex("value").alias("source"),
            F.lit(origin).cast("string").alias("origin"),
            received.alias("ingest_time"),
            received.alias("received_time"),
        )
    )
    judged = judge(lines.coalesce(1), chosen)
    times = [name for name, kind in judged.dtypes if kind == "timestamp"]
    found: dict[bytes, dict[str, Row]] = {}
    for row in judged.withColumns({name: F.unix_micros(name) for name in times}).collect():
        record = row.source.partition("[")[0].partition("+")[0]
        found.setdefault(bytes.fromhex(record), {})[row.source.removeprefix(record)] = row
    return found


def _whole_by_spark(spark: SparkSession, records: list[bytes], chosen: Settings, folder: Path) -> dict[bytes, Row]:
    return {record: rows[""] for record, rows in _by_spark(spark, records, chosen, folder).items()}


def assert_agreement(
    spark: SparkSession, records: list[bytes], chosen: Settings, folder: Path, origin: str | None = None
) -> None:
    """Both engines make the same events of ``records``, with the same verdicts and reasons."""
    own, kept = Judge(chosen), [column.name for column in kept_columns(chosen.source)]
    found = _by_spark(spark, records, chosen, folder, origin)
    for record in records:
        judged, rows = own.judge(record, _RECEIVED, origin), found.get(record, {})
        assert {one.place for one in judged} == rows.keys(), record
        for one in judged:
            _assert_same(one, rows[one.place], chosen, kept)


def _assert_same(judged: Judgement, row: Row, chosen: Settings, kept: Sequence[str]) -> None:
    assert (judged.verdict, judged.source) == (row.verdict, row.source_name), row
    # Of records in adloom's own format, Spark shows a number as it has read it.
    is_mapped = judged.source in chosen.source
    assert (judged.reason or None) == row.reason if is_mapped else bool(judged.reason) == bool(row.reason), row
    if judged.verdict != OK:
        return
    assert {name: _plain(value) for name, value in judged.event.items()} == {name: row[name] for name in FIELDS}
    assert {name: _plain(judged.kept.get(name)) for name in kept} == {name: row[name] for name in kept}


def _plain(value: object) -> object:
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


_OF_TOPICS = Settings.model_validate(
    {
        "source": {
            name: {
                "topics": topics,
                "event_type": "'activity'",
                "map": {"event_id": "$.id", "event_time": "timestamp_seconds(1)", "user_id": "'u'"},
            }
            for name, topics in {"named": "t-1, x", "fits": "t-*.e, u*", "also": "u-2"}.items()
        }
    }
)


@pytest.mark.parametrize("origin", ["t-1", "t-9.e", "t-9xe", None])
def test_records_belong_to_the_sources_that_name_their_topic(
    spark: SparkSession, tmp_path: Path, origin: str | None
) -> None:
    assert_agreement(spark, [b'{"id": 1}'], _OF_TOPICS, tmp_path, origin)
    source = {"t-1": "named", "t-9.e": "fits", "t-9xe": None, None: "named"}[origin]
    assert [one.source for one in Judge(_OF_TOPICS).judge(b'{"id": 1}', _RECEIVED, origin)] == [source]


def test_native_records(spark: SparkSession, tmp_path: Path) -> None:
    # A byte order mark at the beginning of a file is gone before the record is seen.
    records = [record for _, record, _ in VERDICT_CASES if not record.startswith(b"\xef\xbb\xbf") and record.strip()]
    assert_agreement(spark, records, _OWN, tmp_path)


def test_native_records_that_a_mapping_reads(spark: SparkSession, tmp_path: Path) -> None:
    records = [record for _, record, _ in VERDICT_CASES if not record.startswith(b"\xef\xbb\xbf") and record.strip()]
    assert_agreement(spark, records, _EITHER, tmp_path)


def test_ids_without_case(spark: SparkSession, tmp_path: Path) -> None:
    odd = "8F3C-\u00c4\u0130\u1e9e\u212a\u01c5\U00010400-z"
    ids = {"event_id": odd, "user_id": f"U-{odd}", "impression_id": odd, "campaign_id": "C", "ad_id": "A"}
    ids |= {"order_id": "O", "conversion_type": "Sale", "revokes": f"R-{odd}"}
    records = [event | ids for event in _EVENTS]
    records += [{**event, "event_id": "K9", "revokes": "k9", "user_id": 7} for event in _EVENTS]
    for sources in ({}, {"ads": SOURCE}):
        chosen = Settings.model_validate({"source": sources, "ingest": {"lower_ids": True}})
        lines = [json.dumps(foreign(one, 1) if sources else one).encode() for one in records]
        assert_agreement(spark, lines, chosen, tmp_path)
        found = _whole_by_spark(spark, lines, chosen, tmp_path)
        assert all(row.raw.encode() == line for line, row in found.items())
        click = found[lines[1]]
        assert (click.event_id, click.impression_id) == (odd.replace("F", "f").replace("C", "c"),) * 2
        assert found[lines[0]].campaign_id == "C"
        assert found[lines[7]].verdict == "invalid_revokes"


_USERS = (
    *NOBODY,
    *("NULL", "Unknown", "ANONYMOUS", "(Not Set)", "null ", " null", "null\n", "nullnull", "un\u212anown"),
    *(
        "${USER_ID}",
        "{{uid}}",
        "%%ADVERTISING_ID%%",
        "[UID]",
        "__idfa__",
        "${",
        "{guid}",
        "x${u}",
        "[u]x",
        "{{u}",
        "%%%",
        "[\n]",
    ),
    *("a.b", "A.B", "axb", "a.b\n", "niemand|keiner", "\u00c4", "\u00e4", r"\e", 0, -0, 10),
)


@pytest.mark.parametrize(
    "nobody",
    [NOBODY, ("a.b", "Niemand|keiner", "\u00e4", r"\E"), ("a*b", "*ull*", "{*d*"), ()],
    ids=["default", "own", "patterns", "off"],
)
def test_ids_that_mean_nobody(spark: SparkSession, tmp_path: Path, nobody: tuple[str, ...]) -> None:
    events = [_EVENTS[2] | {"event_id": str(n), "user_id": user} for n, user in enumerate(_USERS)]
    own = Settings.model_validate({"ingest": {"nobody": nobody}})
    records = [json.dumps(event).encode() for event in events]
    assert_agreement(spark, records, own, tmp_path)
    users = [row.user_id for row in _whole_by_spark(spark, records, own, tmp_path).values()]
    oracle = [verdict_of(record, receipt=_RECEIVED, ingest=own.ingest) for record in records]
    assert Counter(users) == Counter(one.event.user_id for one in oracle if one.event)
    assert users.count(None) == {NOBODY: len(NOBODY) + 12, (): 0, ("a*b", "*ull*", "{*d*"): 11}.get(nobody, 5)
    mapped = Settings.model_validate({"ingest": {"nobody": nobody}, "source": {"ads": SOURCE, "other": _OTHER}})
    assert_agreement(spark, [json.dumps(foreign(one, 1)).encode() for one in events], mapped, tmp_path)


def test_a_mapped_record_as_deep_as_allowed(spark: SparkSession, tmp_path: Path) -> None:
    records = {
        json.dumps(foreign(event, 1) | {"deep": "?"}).replace('"?"', "[" * levels + "]" * levels).encode(): levels
        for event in _EVENTS
        for levels in (998, 999)
    }
    assert_agreement(spark, list(records), _EITHER, tmp_path)
    found = _whole_by_spark(spark, list(records), _EITHER, tmp_path)
    assert {(records[record], row.verdict) for record, row in found.items()} == {(998, OK), (999, MALFORMED_JSON)}


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(event, id=str(event["event_type"]), marks=pytest.mark.slow if number else ())
        for number, event in enumerate(_EVENTS)
    ],
)
def test_each_part_of_a_record_replaced_by_anything(event: dict[str, Any], spark: SparkSession, tmp_path: Path) -> None:
    record = foreign(event, 1)
    changed = [record]
    for place in _places(record):
        for value in _VALUES:
            copy: Any = json.loads(json.dumps(record))
            _put(copy, place, value)
            changed.append(copy)
    records = list(dict.fromkeys(json.dumps(one).encode() for one in changed))
    assert_agreement(spark, records, _EITHER, tmp_path)


def _places(value: Any, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [*([place] if place else []), *(found for step, one in inner for found in _places(one, (*place, step)))]


def _put(record: Any, place: tuple[str | int, ...], value: object) -> None:
    for step in place[:-1]:
        record = record[step]
    record[place[-1]] = value


@pytest.mark.slow
@run_rarely
@given(st.lists(random_records, min_size=150, max_size=150))
def test_random_records(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    records = list(dict.fromkeys(text.encode() for text in texts if "\n" not in text and text.strip()))
    assert_agreement(spark, records, _EITHER, tmp_path_factory.mktemp("random"))
