"""The judge against the table of records with the verdicts due, and what it reads from good ones."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_jobs.config.sections import IngestSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import DECODE_VERDICTS, MAPPED_VERDICTS, OK, VERDICTS
from spark_jobs.ingest.in_python.judge import Judge
from tests.support.source_files import split_records
from tests.support.verdict_cases import VERDICT_CASES
from tests.support.verdicts import Event, judge

_RECEIPT = datetime(2024, 5, 1, 13, tzinfo=UTC)
_NOON = datetime(2024, 5, 1, 12)  # noqa: DTZ001 naive means UTC throughout


def _verdict(record: str, *, receipt: datetime = _RECEIPT, ingest: IngestSettings | None = None) -> str:
    return judge(record.encode(), receipt=receipt, ingest=ingest or IngestSettings()).verdict


def _activity_at(time: str) -> str:
    return f'{{"event_type": "activity", "event_id": "a1", "event_time": "{time}", "user_id": "u1"}}'


@pytest.mark.parametrize(("record", "verdict"), [pytest.param(*case[1:], id=case[0]) for case in VERDICT_CASES])
def test_the_judge_gives_the_verdict_due(record: bytes, verdict: str) -> None:
    assert judge(record, receipt=datetime(2025, 1, 1, tzinfo=UTC), ingest=IngestSettings()).verdict == verdict


@pytest.mark.parametrize(("record", "verdict"), [pytest.param(*case[1:], id=case[0]) for case in VERDICT_CASES])
def test_check_events_gives_the_verdict_due(record: bytes, verdict: str) -> None:
    (judged,) = Judge(Settings()).judge(record, datetime(2025, 1, 1, tzinfo=UTC))
    assert judged.verdict == verdict


def test_the_table_holds_every_verdict_and_each_record_once() -> None:
    elsewhere = {*MAPPED_VERDICTS, *DECODE_VERDICTS}
    assert {verdict for _, _, verdict in VERDICT_CASES} == set(VERDICTS) - elsewhere
    assert max(Counter(case_id for case_id, _, _ in VERDICT_CASES).values()) == 1
    assert max(Counter(record for _, record, _ in VERDICT_CASES).values()) == 1


def test_the_table_can_be_one_input_file() -> None:
    records = [record for _, record, _ in VERDICT_CASES]
    bare = [record.removeprefix(b"\xef\xbb\xbf") for record in records[:1]] + records[1:]
    assert split_records(b"\n".join(records)) == bare


@pytest.mark.parametrize(
    ("time", "verdict"),
    [
        ("2024-05-01T13:05:00Z", "ok"),
        ("2024-05-01T13:05:00.000001Z", "event_time_in_future"),
        ("2024-05-01T14:05:00+01:00", "ok"),
        ("2024-05-01T14:05:00.000001+01:00", "event_time_in_future"),
        ("2024-05-01T12:06:00-01:00", "event_time_in_future"),
    ],
)
def test_a_time_may_lie_the_skew_past_the_receipt_and_no_further(time: str, verdict: str) -> None:
    assert _verdict(_activity_at(time)) == verdict


def test_the_skew_is_a_setting() -> None:
    ingest = IngestSettings(max_future_skew=timedelta(hours=1))
    assert _verdict(_activity_at("2024-05-01T14:00:00Z"), ingest=ingest) == "ok"
    assert _verdict(_activity_at("2024-05-01T14:00:00.000001Z"), ingest=ingest) == "event_time_in_future"


def test_the_size_limit_is_a_setting() -> None:
    record = _activity_at("2024-05-01T12:00:00Z").ljust(1024)
    assert _verdict(record, ingest=IngestSettings(max_record_bytes=1024)) == "ok"
    assert _verdict(record + " ", ingest=IngestSettings(max_record_bytes=1024)) == "record_too_large"


_GOOD = (
    pytest.param(
        {"event_type": "impression", "event_time": "2024-05-01t14:00:00.5+02:00", "campaign_id": 7, "ad_id": "\u00e4"}
        | {"cost_micros": 10**12, "is_last": True, "data": "ignored"},
        Event(
            "impression", "e", _NOON + timedelta(milliseconds=500), "u", is_last=True, campaign_id="7", ad_id="ä"
        )._replace(cost_micros=10**12),
        id="an impression with all its fields",
    ),
    pytest.param(
        {"event_type": "impression", "event_time": "2024-05-01T12:00:00Z", "campaign_id": "c", "ad_id": "a"}
        | {"cost_micros": None, "is_last": None, "impression_id": True},
        Event("impression", "e", _NOON, "u", is_last=False, campaign_id="c", ad_id="a", cost_micros=None),
        id="an impression with its defaults",
    ),
    pytest.param(
        {"event_type": "click", "event_time": "2024-05-01T12:00:00.000001Z", "impression_id": 10**22}
        | {"cost_micros": 5, "campaign_id": "ignored", "data": "ignored"},
        Event("click", "e", _NOON + timedelta(microseconds=1), "u", is_last=False, impression_id="1" + "0" * 22),
        id="a click",
    ),
    pytest.param(
        {"event_type": "activity", "event_time": "2024-05-01T00:00:00-12:00", "data": "", "ad_id": "ignored"},
        Event("activity", "e", _NOON, "u", is_last=False, data=""),
        id="activity with empty data",
    ),
    pytest.param(
        {"event_type": "activity", "event_time": "2024-05-01T12:00:00Z", "data": "a\0b"},
        Event("activity", "e", _NOON, "u", is_last=False, data="a\0b"),
        id="activity with a NUL in its data",
    ),
    pytest.param(
        {"event_type": "conversion", "event_time": "2024-05-01T12:00:00Z", "conversion_type": 7}
        | {"value_micros": 10**15, "currency": "EUR", "order_id": 10**22, "revokes": "p", "cost_micros": 5},
        Event("conversion", "e", _NOON, "u", is_last=False)._replace(
            conversion_type="7", value_micros=10**15, currency="EUR", order_id="1" + "0" * 22, revokes="p"
        ),
        id="a conversion with all its fields",
    ),
    pytest.param(
        {"event_type": "conversion", "event_time": "2024-05-01T12:00:00Z", "conversion_type": "signup"}
        | {"value_micros": 0, "currency": None, "order_id": None, "revokes": None, "data": "ignored"},
        Event("conversion", "e", _NOON, "u", is_last=False)._replace(conversion_type="signup", value_micros=0),
        id="a conversion of no value",
    ),
    pytest.param(
        {"event_type": "activity", "event_time": "2024-05-01T12:00:00Z", "ip": 3221225985, "user_agent": "a\0b"},
        Event("activity", "e", _NOON, "u", is_last=False, ip="3221225985", user_agent="a\0b"),
        id="activity with the device of its user",
    ),
    pytest.param(
        {"event_type": "click", "event_time": "2024-05-01T12:00:00Z", "user_id": "Unknown", "impression_id": "unknown"},
        Event("click", "e", _NOON, None, is_last=False, impression_id="unknown"),
        id="a click of nobody",
    ),
)


@pytest.mark.parametrize(("fields", "event"), _GOOD)
def test_the_fields_of_a_good_record_are_read_by_the_contract(fields: dict[str, Any], event: Event) -> None:
    record = json.dumps({"event_id": "e", "user_id": "u"} | fields)
    judged = judge(record.encode(), receipt=_RECEIPT, ingest=IngestSettings())
    assert (judged.verdict, judged.event, judged.raw) == ("ok", event, record)


_ODD = "8F3C-\u00c4\u0130\u1e9e\u212a\u01c5-z"
"""Letters of which Java, Python and databases make different small ones."""
_LOWERED = "8f3c-\u00c4\u0130\u1e9e\u212a\u01c5-z"


@pytest.mark.parametrize("lower_ids", [False, True])
def test_ids_lose_the_case_of_their_ascii_letters_where_the_settings_say_so(lower_ids: bool) -> None:  # noqa: FBT001
    ids = {"event_id": _ODD, "user_id": "U", "impression_id": "AB1", "campaign_id": "C", "ad_id": "A", "order_id": "O"}
    ids |= {"conversion_type": "Sale", "revokes": "K9"}
    settings = Settings.model_validate({"ingest": {"lower_ids": lower_ids}})
    for kind in ("impression", "click", "conversion"):
        other = {"event_type": kind, "event_time": "2024-05-01T12:00:00Z", "value_micros": 0}
        record = json.dumps(other | ids).encode()
        judged = judge(record, receipt=_RECEIPT, ingest=settings.ingest)
        (by_python,) = Judge(settings).judge(record, _RECEIPT)
        assert judged.event is not None
        event = judged.event._asdict()
        assert {name: by_python.event[name] for name in ids} == {name: event[name] for name in ids}
        changed = {name: value for name, value in event.items() if name in ids and value and value != ids[name]}
        expected = {"event_id": _LOWERED, "user_id": "u", "impression_id": "ab1", "revokes": "k9"}
        assert changed == {name: value for name, value in expected.items() if lower_ids and event[name]}
        assert judged.raw == record.decode()


@pytest.mark.parametrize(("lower_ids", "verdict"), [(False, "ok"), (True, "invalid_revokes")])
def test_a_conversion_that_takes_itself_back_in_another_case(lower_ids: bool, verdict: str) -> None:  # noqa: FBT001
    fields = {"event_type": "conversion", "event_id": "K9", "event_time": "2024-05-01T12:00:00Z", "user_id": "u"}
    record = json.dumps(fields | {"conversion_type": "sale", "value_micros": 0, "revokes": "k9"}).encode()
    settings = Settings.model_validate({"ingest": {"lower_ids": lower_ids}})
    (judged,) = Judge(settings).judge(record, _RECEIPT)
    assert judged.verdict == judge(record, receipt=_RECEIPT, ingest=settings.ingest).verdict == verdict


@pytest.mark.parametrize(("record", "verdict"), [pytest.param(*case[1:], id=case[0]) for case in VERDICT_CASES])
def test_check_events_reads_the_user_that_is_due(record: bytes, verdict: str) -> None:
    if verdict != OK:
        return
    due = judge(record, receipt=datetime(2025, 1, 1, tzinfo=UTC), ingest=IngestSettings()).event
    (judged,) = Judge(Settings()).judge(record, datetime(2025, 1, 1, tzinfo=UTC))
    assert due is not None
    assert judged.event["user_id"] == due.user_id


def test_minus_zero_as_an_id_is_zero() -> None:
    record = _activity_at("2024-05-01T12:00:00Z").replace('"a1"', "-0")
    event = judge(record.encode(), receipt=_RECEIPT, ingest=IngestSettings()).event
    assert event is not None
    assert event.event_id == "0"


def test_bytes_that_are_not_utf8_are_held_as_latin1() -> None:
    assert judge(b'{"a": "\xe9"}', receipt=_RECEIPT, ingest=IngestSettings()).raw == '{"a": "é"}'


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\r\nb\r\n", [b"a\r", b"b\r"]),
        (b"a\rb\n", [b"a\rb"]),
        (b" \t\r\n a\n\r\n", [b" a"]),
        (b"\x0b\n\xc2\xa0\n\x00\n", [b"\x0b", b"\xc2\xa0", b"\x00"]),
        (b"\xe2\x80\xa8\n\xc2\x85\n\x0c", [b"\xe2\x80\xa8", b"\xc2\x85", b"\x0c"]),
        (b"\xef\xbb\xbfa\nb", [b"a", b"b"]),
        (b"\xef\xbb\xbf\na", [b"a"]),
    ],
)
def test_records_end_at_line_feeds_only_and_blank_ones_do_not_count(content: bytes, records: list[bytes]) -> None:
    assert split_records(content) == records


def test_a_number_of_thousands_of_digits_is_no_amount() -> None:
    fields = {"event_type": "impression", "event_id": "i", "event_time": "2024-05-01T12:00:00Z", "user_id": "u"}
    text = json.dumps(fields | {"campaign_id": "c", "ad_id": "a", "cost_micros": 0})
    record = text.replace('"cost_micros": 0', f'"cost_micros": {"9" * 5000}').encode()
    (judged,) = Judge(Settings()).judge(record, _RECEIPT)
    assert judged.verdict == "invalid_cost_micros"


def test_a_source_without_topics_means_records_of_any_topic() -> None:
    mapping = {"event_id": "$.id", "event_time": "$.at", "user_id": "$.u"}
    sources = {
        "clicks": {
            "topics": "x",
            "when": "$.k = 1",
            "event_type": "'click'",
            "map": mapping | {"impression_id": "$.i"},
        },
        "rest": {"event_type": "'activity'", "map": mapping},
    }
    settings = Settings.model_validate({"source": sources})
    assert settings.topics == ("x",)
    assert Settings.model_validate({"source": {"rest": sources["rest"]}}).topics == ("events",)
    record = json.dumps({"id": "e", "at": "2024-05-01T12:00:00Z", "u": "u", "k": 1, "i": "i"}).encode()
    found = {
        origin: one.source for origin in ("x", "y", None) for one in Judge(settings).judge(record, _RECEIPT, origin)
    }
    assert found == {"x": "clicks", "y": "rest", None: "clicks"}
