"""What is chosen from a profile: times, types, ids and users, case by case; and that any draft loads."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.config.encoding import Encoding, RecordFormat
from spark_jobs.config.settings import Settings
from spark_jobs.ingest.in_python.judge import Judge
from spark_jobs.mapping import Record, evaluate, parse_expression
from spark_jobs.mapping.sources import compile_sources
from spark_jobs.mapping.suggest import Draft, Shape, as_toml, profile_of, suggest
from spark_jobs.mapping.suggest.candidates import source_name
from spark_jobs.mapping.suggest.derived import with_derived
from spark_jobs.mapping.suggest.names import EVENT_ID, USER_ID, name_score
from spark_jobs.mapping.suggest.times import NO_ZONE
from tests.support.draft_scores import settings_of

_NOW = datetime(2026, 11, 1, tzinfo=UTC)
_HOURS = f"the times say only the hour; {NO_ZONE}"


def draft_of(records: list[dict[str, Any]]) -> Draft:
    return suggest(profile_of(json.dumps(record).encode() for record in records), "x", _NOW)


def one_source(records: list[dict[str, Any]]) -> dict[str, Any]:
    (source,) = draft_of(records).settings().values()
    return dict(source)


@pytest.mark.parametrize(
    ("values", "expression", "check"),
    [
        pytest.param([1772366400, 1772366409], "timestamp_seconds($.t)", "", id="seconds"),
        pytest.param([1772366400.25, 1772366409], "timestamp_seconds($.t)", "", id="seconds-with-a-fraction"),
        pytest.param(["1772366400123", "1772366409000"], "timestamp_millis($.t)", "", id="millis-as-text"),
        pytest.param([1772366400123.5], "timestamp_millis($.t)", "", id="millis-with-a-fraction"),
        pytest.param([1772366400123456], "timestamp_micros($.t)", "", id="micros"),
        pytest.param([1772366400123456789], "timestamp_nanos($.t)", "", id="nanos"),
        pytest.param(["2026-03-01T12:00:00Z", "2026-03-01T12:00:00.5+01:00"], "$.t", "", id="rfc-3339"),
        pytest.param(["2026-03-01 12:00:00"], "$.t", NO_ZONE, id="no-zone"),
        pytest.param(["2026-03-01 12:00:00 UTC"], "$.t", "", id="utc"),
        pytest.param(
            ["2026-03-01T12:00:00.123456789Z"],
            "$.t",
            "",
            id="nanosecond-text",
        ),
        pytest.param(
            ["2026-03-01T12:00:00+0100"],
            "$.t",
            "",
            id="offset-without-colon",
        ),
        pytest.param(["01.03.2026 12:00:00"], "to_timestamp($.t, 'dd.MM.yyyy HH:mm:ss')", NO_ZONE, id="dots"),
        pytest.param(
            ["2026/03/01 12:00:00.123"], "to_timestamp($.t, 'yyyy/MM/dd HH:mm:ss.SSS')", NO_ZONE, id="slashes"
        ),
        pytest.param(["20260301120000"], "to_timestamp($.t, 'yyyyMMddHHmmss')", NO_ZONE, id="digits"),
        pytest.param(["20260301T120000Z"], "to_timestamp($.t, \"yyyyMMdd'T'HHmmssXXX\")", "", id="basic"),
        pytest.param(["03/15/2026 12:00:00"], "to_timestamp($.t, 'MM/dd/yyyy HH:mm:ss')", NO_ZONE, id="month-first"),
        pytest.param(["15/03/2026 12:00:00"], "to_timestamp($.t, 'dd/MM/yyyy HH:mm:ss')", NO_ZONE, id="day-first"),
        pytest.param(
            ["01/Mar/2026:12:00:00 +0100"], "to_timestamp($.t, 'dd/MMM/yyyy:HH:mm:ss Z')", "", id="access-log"
        ),
        pytest.param(
            ["Sun, 01 Mar 2026 12:00:00 GMT"], "to_timestamp($.t, 'EEE, d MMM yyyy HH:mm:ss z')", "", id="http"
        ),
        pytest.param(["14102100", "26030112"], "to_timestamp($.t, 'yyMMddHH')", _HOURS, id="avazu"),
        pytest.param(["2026030112"], "to_timestamp($.t, 'yyyyMMddHH')", _HOURS, id="hours"),
        pytest.param(
            [1772366400, 1772366400123, "2026-03-01T12:00:00Z"],
            "parse_time($.t)",
            "some are numbers, and some texts or of another unit",
            id="mixed",
        ),
        pytest.param(["", "1772366400"], "timestamp_seconds(nullif($.t, ''))", "", id="blanks"),
    ],
)
def test_a_time_is_read(values: list[Any], expression: str, check: str) -> None:
    (source,) = draft_of([{"t": value, "n": number} for number, value in enumerate(values)]).sources
    assert source.fields["event_time"].expression == expression
    assert "; ".join(source.fields["event_time"].checks) == check


def test_month_and_day_that_cannot_be_told_apart_are_to_be_checked() -> None:
    (source,) = draft_of([{"t": "03/04/2026 12:00:00"}]).sources
    assert any("swap MM and dd" in check for check in source.fields["event_time"].checks)


@pytest.mark.parametrize("value", [1, 123456, 99999999999, "soon", True, -1772366400, "12:00:00", None, "2126-03-01"])
def test_no_time_is_read_where_there_is_none(value: object) -> None:
    assert one_source([{"t": value}])["map"]["event_time"] == "$.event_time"


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("event_time", "received_at"),
        ("ts", "ingest_ts"),
        ("created_at", "updated_at"),
        ("derived_tstamp", "collector_tstamp"),
        ("timestamp", "sentAt"),
        ("time", "session_start_time"),
        ("action_time", "upload_time"),
        ("shown_ts", "kafka_ts"),
    ],
)
def test_of_two_times_the_one_of_the_event_is_chosen(better: str, worse: str) -> None:
    records = [{worse: 1772366400 + n, better: 1772366300 + n} for n in range(20)]
    assert one_source(records)["map"]["event_time"] == f"timestamp_seconds($.{better})"


@pytest.mark.parametrize(
    ("values", "expression"),
    [
        (["imp", "clk"], "case when $.e = 'imp' then 'impression' when $.e = 'clk' then 'click' end"),
        (["I", "C"], "case when $.e = 'I' then 'impression' when $.e = 'C' then 'click' end"),
        (
            ["view", "click", "hover"],
            "case when $.e = 'view' then 'impression' when $.e = 'click' then 'click' else 'activity' end",
        ),
        (
            ["AdImp", "VideoAdImp", "adClick"],
            "case when $.e in ('AdImp', 'VideoAdImp') then 'impression' when $.e = 'adClick' then 'click' end",
        ),
        (["ad_click", "click"], "case when $.e = 'ad_click' then 'click' else 'activity' end"),
        (["impression", "click", "activity"], "$.e"),
        (["page_view", "scroll"], "'activity'"),
        (["imp'", "click\\", 'click"'], "'activity'"),
        (["view", "purchase"], "'activity'"),
        (
            ["imp", "conv", "pv"],
            "case when $.e = 'imp' then 'impression' when $.e = 'conv' then 'conversion' else 'activity' end",
        ),
        (["impression", "click", "conversion"], "$.e"),
        (["conv", "pv"], "case when $.e = 'conv' then 'conversion' else 'activity' end"),
        (["click_conversion", "pv"], "'activity'"),
    ],
)
def test_types_are_told_by_their_words(values: list[str], expression: str) -> None:
    records = [{"e": values[n % len(values)], "n": n} for n in range(30)]
    draft = draft_of(records)
    assert {source.event_type.expression for source in draft.sources} == {expression}


def test_values_of_other_columns_are_no_types() -> None:
    records = [{"placement": ("banner", "view", "display")[n % 3], "n": n} for n in range(30)]
    assert one_source(records)["event_type"] == "'activity'"


def test_a_user_who_is_in_one_of_two_places() -> None:
    records = [
        {"id": n, **({"uid": f"u{n % 6}"} if n % 6 < 4 else {"device": {"ifa": f"d{n % 6}"}})} for n in range(120)
    ]
    assert one_source(records)["map"]["user_id"] == "coalesce($.uid, $.device.ifa)"


def test_what_is_the_same_in_all_records_is_no_user() -> None:
    records = [{"cookie": "1", "ip": f"198.51.100.{n % 40}", "page": n} for n in range(200)]
    assert one_source(records)["map"].get("user_id") != "$.cookie"


def test_an_id_that_many_records_have_is_asked_about() -> None:
    draft = draft_of([{"id": n, "uid": "guest" if n % 3 == 0 else f"u{n % 50}"} for n in range(300)])
    (check,) = draft.sources[0].fields["user_id"].checks
    assert '"guest" is in 33% of the records' in check
    assert "add it to ingest.nobody" in check
    fine = draft_of([{"id": n, "uid": f"u{n % 50}"} for n in range(300)])
    assert not fine.sources[0].fields["user_id"].checks


def test_an_id_that_is_known_to_mean_nobody_is_said_to_count_as_none() -> None:
    nobody = "00000000-0000-0000-0000-000000000000"
    users = [nobody, "guest", "u1", "u2", "u3"]
    draft = draft_of([{"id": n, "uid": users[n % 3] if n % 3 < 2 else f"u{n % 50}"} for n in range(300)])
    known, asked = sorted(draft.sources[0].fields["user_id"].checks)
    assert known == f'"{nobody}" is in 33% of the records: it means nobody (ingest.nobody), so they have no user'
    assert '"guest" is in 33% of the records' in asked
    assert "may_lack" not in draft.settings()["x"]


def test_records_without_a_user_are_let_through_and_said() -> None:
    draft = draft_of([{"id": n, **({"uid": f"u{n % 6}"} if n % 10 else {})} for n in range(120)])
    assert draft.settings()["x"]["may_lack"] == "user_id"
    assert any("10.0% of the records have no user" in check for check in draft.sources[0].checks)


def test_the_id_that_clicks_name_is_that_of_the_impressions() -> None:
    shown = [{"e": "imp", "event_id": f"e{n}", "auction": f"auction-{n:05}", "ts": 1772366400 + n} for n in range(80)]
    clicks = [{"e": "clk", "event_id": f"f{n}", "ref": f"auction-{n:05}", "ts": 1772366500 + n} for n in range(40)]
    found = draft_of(shown + clicks).settings()
    assert found["x_shown"]["map"]["event_id"] == "$.auction"
    assert found["x_clicked"]["map"]["event_id"] == "$.event_id"
    assert found["x_clicked"]["map"]["impression_id"] == "$.ref"


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([{"id": f"{n}", "m": n} for n in range(99)], "$.id", id="by-name"),
        pytest.param([{"id": n // 9, "m": f"{n:032x}"} for n in range(99)], "$.m", id="by-look"),
        pytest.param(
            [{"uid": n % 9, "t": 1772366400 + n // 9} for n in range(99)],
            "sha2(concat($.uid, '|', $.t), 256)",
            id="hash",
        ),
        pytest.param(
            [{"uid": n % 3, "t": 1772366400, "a": n, "b": n // 3} for n in range(99)],
            "sha2(concat($.uid, '|', $.t, '|', $.a), 256)",
            id="hash-with-what-adds-most",
        ),
        pytest.param([{"tags": [0, n]} for n in range(99)], "sha2($, 256)", id="whole-record"),
    ],
)
def test_an_id_is_found_or_made(records: list[dict[str, Any]], expected: str) -> None:
    assert one_source(records)["map"]["event_id"] == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("price", 0.0021, "micros($.price)"),
        ("cpm", 2.1, "micros($.cpm / 1000)"),
        ("cost_cents", 3, "micros($.cost_cents / 100)"),
        ("cost_micros", 2100, "$.cost_micros"),
        ("price", "0,0021", "micros(replace($.price, ',', '.'))"),
        ("price", "2,053", "micros(replace($.price, ',', ''))"),
        ("price", "1,234,567.89", "micros(replace($.price, ',', ''))"),
        ("price", "1.234,50", "micros(replace(replace($.price, '.', ''), ',', '.'))"),
        ("price", "free", None),
        ("price", -1, None),
    ],
)
def test_a_price_becomes_millionths(name: str, value: object, expected: str | None) -> None:
    records = [{"type": "imp", "campaign": n % 3, "ad": n % 9, name: value, "n": n} for n in range(60)]
    assert one_source(records)["map"].get("cost_micros") == expected


@pytest.mark.parametrize("value", ["2,053", "0,0021", "1.234,50", "1.234", "1,234.5"])
def test_a_mark_in_a_price_is_to_be_checked(value: str) -> None:
    (source,) = draft_of([{"type": "imp", "campaign": 1, "ad": 2, "price": value, "n": n} for n in range(60)]).sources
    assert any("is taken for" in check and value in check for check in source.fields["cost_micros"].checks)


def test_small_and_large_prices_are_shown_beside_their_texts() -> None:
    texts = ["8.5e-05", "1.25", "0.0021"]
    records = [{"type": "imp", "campaign": 1, "ad": 2, "price": texts[n % 3], "n": n} for n in range(60)]
    (source,) = draft_of(records).sources
    shown = 'smallest "8.5e-05" = 85 micros, median "0.0021" = 2,100 micros, largest "1.25" = 1,250,000 micros'
    assert source.fields["cost_micros"].why.endswith(shown)


def _sales(**more: Any) -> list[dict[str, Any]]:
    return [{"type": "conv", "id": f"e{n}", "uid": f"u{n % 9}", "ts": 1772366400 + n, **more} for n in range(60)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"goal": "purchase", "revenue": "12.50", "currency": "EUR", "order": {"id": 7}},
            {
                "conversion_type": "$.goal",
                "value_micros": "micros($.revenue)",
                "currency": "$.currency",
                "order_id": "$.order.id",
            },
            id="units",
        ),
        pytest.param(
            {"conversion": {"name": "lead"}, "value_cents": 1250, "currency_code": "usd"},
            {
                "conversion_type": "$.conversion.name",
                "value_micros": "micros($.value_cents / 100)",
                "currency": "upper($.currency_code)",
            },
            id="cents",
        ),
        pytest.param({"goal": True, "revenue": "free", "currency": "euro"}, {}, id="nothing-that-fits"),
    ],
)
def test_the_fields_of_conversions_are_found(given: dict[str, Any], expected: dict[str, str]) -> None:
    found = one_source(_sales(**given))
    of_all = ("event_id", "event_time", "user_id")
    assert {name: text for name, text in found["map"].items() if name not in of_all} == expected
    assert found["event_type"] == "case when $.type = 'conv' then 'conversion' end"


def test_a_refund_is_found_however_rare() -> None:
    records = [record | ({"refund_of": "e1"} if number == 50 else {}) for number, record in enumerate(_sales())]
    assert one_source(records)["map"]["revokes"] == "$.refund_of"


def test_what_every_conversion_needs_and_nothing_reads_like_is_to_be_named() -> None:
    (source,) = draft_of(_sales(goal="signup")).sources
    missing = [check.split(",")[0] for check in source.checks if "every conversion needs" in check]
    assert missing == ["nothing reads like the value_micros", "nothing reads like the currency"]


_BROWSER = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {"ip": "192.0.2.7", "user_agent": _BROWSER}, {"ip": "$.ip", "user_agent": "$.user_agent"}, id="plain"
        ),
        pytest.param(
            {"device": {"ua": _BROWSER, "ip": "2001:db8::7"}},
            {"ip": "$.device.ip", "user_agent": "$.device.ua"},
            id="openrtb",
        ),
        pytest.param(
            {"context": {"userAgent": _BROWSER, "clientIp": "192.0.2.7"}},
            {"ip": "$.context.clientIp", "user_agent": "$.context.userAgent"},
            id="camel-case",
        ),
        pytest.param(
            {"remote_addr": "192.0.2.7", "http_user_agent": "-"}, {"ip": "$.remote_addr"}, id="no-user-agent-at-all"
        ),
        pytest.param({"ip_address": "192.0.2.7", "useragent": ""}, {"ip": "$.ip_address"}, id="empty-user-agent"),
        pytest.param({"server_ip": "192.0.2.7", "ip": 80007}, {}, id="of-the-server-and-a-code"),
        pytest.param({"ip": "192.0.2.xxx", "ua": {"browser": "Firefox"}}, {}, id="cut-and-taken-apart"),
        pytest.param({"ip": "192.0.2.7, 192.0.2.8", "ua": "x" * 1025}, {"user_agent": "$.ua"}, id="list-and-too-long"),
    ],
)
def test_the_device_is_found_by_names_and_values(given: dict[str, Any], expected: dict[str, str]) -> None:
    records = [{"id": n, "uid": f"u{n % 9}", "ts": 1772366400 + n, **given} for n in range(60)]
    found = one_source(records)["map"]
    assert {name: found[name] for name in ("ip", "user_agent") if name in found} == expected


def test_the_device_is_found_where_types_have_names_of_their_own() -> None:
    shown = [{"e": "imp", "imp": f"i{n}", "at": 1772366400 + n, "ip": f"192.0.2.{n}"} for n in range(80)]
    clicks = [{"e": "clk", "clk": f"k{n}", "ts": 1772366500 + n, "clientIp": f"192.0.2.{n}"} for n in range(40)]
    found = draft_of(shown + clicks).settings()
    assert {source["map"]["ip"] for source in found.values()} == {"coalesce($.ip, $.clientIp)"}


def test_a_user_agent_is_not_taken_for_the_text_of_an_activity() -> None:
    records = [{"id": n, "uid": f"u{n % 9}", "ts": 1772366400 + n, "ua": f"{_BROWSER} {n % 5}"} for n in range(60)]
    found = one_source(records)["map"]
    assert (found["user_agent"], found.get("data")) == ("$.ua", None)


def test_the_source_without_a_condition_comes_last() -> None:
    conversions = [{"e": "conversion", "n": n, "ts": 1772366400 + n, "uid": f"u{n % 9}"} for n in range(40)]
    others = [{"e": "pv", "m": n, "at": 1772366400 + n, "visitor": f"u{n % 9}"} for n in range(40)]
    found = draft_of(conversions + others).settings()
    assert [(name, "when" in source) for name, source in found.items()] == [("x_converted", True), ("x_other", False)]


def test_parameters_in_lists_are_read_as_their_expressions_read_them() -> None:
    records = [
        {"p": [{"key": "a.b", "value": {"int_value": "7"}}, {"key": "c", "value": {"string_value": 'x"y'}}]},
        {"p": [{"key": "c", "value": {"string_value": "ü"}}, {"key": "a.b", "value": {"int_value": -3}}]},
        {"p": [{"key": "c", "value": {"string_value": "", "int_value": None}}]},
        {"p": []},
        {"p": "none"},
    ]
    profile = with_derived(profile_of(json.dumps(record).encode() for record in records))
    found = [column for column in profile.columns.values() if column.is_derived]
    assert [column.keys for column in found] == [("c",), ("a.b",)]
    for column in found:
        parsed = parse_expression(column.expression)
        values = {row: evaluate(parsed, Record(json.dumps(record))).value for row, record in enumerate(records)}
        assert column.values == {row: value for row, value in values.items() if value is not None}
    assert found[1].values == {0: "7", 1: "-3"}
    assert found[0].values[0] == 'x"y'


def test_a_parameter_is_exact_whatever_form_it_has() -> None:
    """Public exports have prices as ``8.5e-05``, and whole ones in another member."""
    values = [{"double_value": 8.5e-05}, {"int_value": 2}, {"double_value": 1.25}]
    records = [
        {"event_params": [{"key": "x", "value": {"string_value": 'a "b" \\ c'}}, {"key": "price", "value": one}]}
        for one in values
    ]
    profile = with_derived(profile_of(json.dumps(record).encode() for record in records))
    (price,) = [column for column in profile.columns.values() if column.keys == ("price",)]
    micros = parse_expression(f"micros({price.expression})")
    assert [evaluate(micros, Record(json.dumps(record))).value for record in records] == [85, 2_000_000, 1_250_000]


@pytest.mark.parametrize(
    ("keys", "fits"),
    [
        (("user_id",), True),
        (("userId",), True),
        (("USER_ID",), True),
        (("user", "id"), True),
        (("data", "userid"), True),
        (("trackingUserId",), True),
        (("id",), False),
        (("campaign", "id"), False),
        (("user_agent",), False),
    ],
)
def test_names_of_users(keys: tuple[str, ...], fits: bool) -> None:  # noqa: FBT001 a case
    assert bool(name_score(keys, USER_ID)) == fits


def test_the_id_of_an_object_is_not_that_of_the_event() -> None:
    assert not name_score(("user", "id"), EVENT_ID)
    assert name_score(("event", "id"), EVENT_ID)
    assert name_score(("id",), EVENT_ID) > name_score(("request_id",), EVENT_ID)


@pytest.mark.parametrize(
    ("text", "name"), [("My Log-2026", "my_log_2026"), ("2026", "events_2026"), ("", "events"), ("Ü", "events")]
)
def test_a_source_is_named_after_the_file(text: str, name: str) -> None:
    assert source_name(text) == name


# What looks like ids, times, types and addresses makes the choosing go all its ways.
_TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["imp", "click", "activity", "-", "", "'", '"', "\\", "\x7f", "\x00", "$.a", "]]", "\ue000"]),
    st.sampled_from(["2026-03-01T12:00:00Z", "2026-03-01", "12:00:00", "/imp?cid=1&a'=2", "iglu:a/click/jsonschema/1"]),
)
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _TEXTS,
    st.integers(1772366400, 1772369999), st.integers(1772366400000, 1772369999999),
)  # fmt: skip
_KEYS = st.one_of(
    st.sampled_from(
        ["id", "ts", "type", "user", "campaign_id", "ad", "imp", "price", "data", "key", "value", "is_last"]
    ),
    st.text(max_size=6),
)
_TYPED = st.fixed_dictionaries({"key": _TEXTS, "value": st.fixed_dictionaries({"string_value": _TEXTS})})
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4) | st.lists(_TYPED, max_size=3)
    ),
    max_leaves=8,
)
_RECORDS = st.lists(st.dictionaries(_KEYS, _VALUES, max_size=6), min_size=1, max_size=12)


_SHAPES = (
    Shape(Encoding(RecordFormat.JSON)),
    Shape(Encoding(RecordFormat.CSV)),
    Shape(Encoding(RecordFormat.CSV, delimiter="\t")),
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_RECORDS, st.sampled_from(_SHAPES))
def test_any_records_give_a_draft_that_loads(records: list[dict[str, Any]], shape: Shape) -> None:
    raw = [json.dumps(record).encode() for record in records]
    profile = profile_of(raw)
    draft = suggest(profile, "x", _NOW)
    loaded, formats = settings_of(as_toml(draft, shape, profile, ["from [x]\x00\n"]))
    assert compile_sources(loaded).keys() == draft.settings().keys()
    added = {"format": shape.encoding.format.value, **shape.encoding.differing}
    expected = {name: {**source, **added} for name, source in draft.settings().items()}
    assert loaded == Settings.model_validate({"source": expected})
    assert all(one.get("format", "json") == shape.encoding.format for one in formats.values())
    judge = Judge(loaded)
    assert all(judge.judge(record, _NOW) for record in raw)
