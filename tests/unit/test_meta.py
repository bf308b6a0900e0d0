"""Paths into the metadata of a record."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from spark_jobs.config.settings import Settings
from spark_jobs.errors import SettingsError
from spark_jobs.ingest.in_python.judge import Judge
from spark_jobs.ingest.in_python.meta import of_file, of_kafka
from spark_jobs.mapping.sources import compile_sources

_RECEIVED = datetime(2026, 8, 1, tzinfo=UTC)
_MAP = {"event_id": "$.id", "event_time": "$meta.time", "user_id": "$meta.key"}
_META = of_kafka(("t", 2, 7), b"u", [("of", b"h")], 1_772_366_400_123)


def _settings(**source: Any) -> Settings:
    own = {"event_type": "'activity'", **source}
    return Settings.model_validate({"source": {"s": {**own, "map": _MAP | source.get("map", {})}}})


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("$meta.kee", r"\$meta.kee is not known; \$meta has topic, partition, offset, key, headers, time, file"),
        ("$meta", r"\$meta is not known"),
        ("$meta[0]", r"\$meta\[0\] is not known"),
    ],
)
def test_what_is_not_known_of_any_record_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        compile_sources(_settings(map={"user_id": expression}))


def test_it_is_no_place_for_records_and_no_name_of_a_text() -> None:
    with pytest.raises(SettingsError, match="names no list in the record"):
        compile_sources(_settings(each="$meta.headers"))
    with pytest.raises(ValidationError, match=r"let.meta: \$meta is the metadata of a record"):
        _settings(let={"meta": "$.x"})


def test_elements_and_texts_have_what_is_known_of_their_record() -> None:
    more = {"ip": "$meta.headers.of", "user_agent": "$header.agent"}
    judge = Judge(_settings(each="$.list", let={"header": "$meta.headers['x-device']"}, map=more))
    meta = of_kafka(("t", 2, 7), b"u", [("of", b"h"), ("x-device", b'{"agent": "a"}')], 1_772_366_400_123)
    found = judge.judge(b'{"list": [{"id": "1"}, {"id": "2"}]}', _RECEIVED, "t", meta)
    time = datetime(2026, 3, 1, 12, microsecond=123_000, tzinfo=UTC)
    expected = {"event_time": time, "user_id": "u", "ip": "h", "user_agent": "a"}
    assert [one.event["event_id"] for one in found] == ["1", "2"]
    assert [{name: one.event[name] for name in expected} for one in found] == [expected] * 2


def test_a_record_that_cannot_be_read_belongs_to_the_source_that_means_it_by_its_headers() -> None:
    judge = Judge(_settings(when="$meta.headers.of = 'h'"))
    assert [(one.verdict, one.source) for one in judge.judge(b"{", _RECEIVED, "t", _META)] == [("malformed_json", "s")]
    assert [(one.verdict, one.source) for one in judge.judge(b"{", _RECEIVED, "t")] == [("malformed_json", None)]


def test_a_record_of_a_file_has_its_path_alone() -> None:
    judge = Judge(_settings(map={"event_time": r"regexp_extract($meta.file, 'dt=([0-9-]+)', 1)", "user_id": "$.id"}))
    (one,) = judge.judge(b'{"id": "1"}', _RECEIVED, meta=of_file("file:///logs/dt=2026-03-01/a.jsonl"))
    assert one.event["event_time"] == datetime(2026, 3, 1, tzinfo=UTC)
    (other,) = Judge(_settings()).judge(b'{"id": "1"}', _RECEIVED, meta=of_file("file:///a.jsonl"))
    assert (other.verdict, other.reason) == ("missing_event_time", "event_time = $meta.time: $meta.time is missing")


def test_a_field_is_known_only_if_it_is_read_of_the_record_itself() -> None:
    judge = Judge(_settings(unknown="quarantine", map={"user_id": "$meta.headers.of"}))
    for record, verdict in ((b'{"id": "1"}', "ok"), (b'{"id": "1", "headers": 1}', "unknown_field")):
        assert [one.verdict for one in judge.judge(record, _RECEIVED, "t", _META)] == [verdict]
