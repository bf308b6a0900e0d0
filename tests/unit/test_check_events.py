"""``adloom check-events``: files of every format, what fits, and an example of what does not."""

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from spark_jobs.cli import app

_TOML = """
[source.ads]
{extra}
event_type = "'click'"
[source.ads.map]
event_id = "$.id"
event_time = "timestamp_millis($.ts)"
user_id = "$.user"
impression_id = "$.imp"
"""
_ROWS: list[dict[str, str | None]] = [
    {"id": "k1", "ts": "1772366400000", "user": "u1", "imp": "i1"},
    {"id": "k2", "ts": "today", "user": "u1", "imp": "i1"},
    {"id": "k3", "ts": "1772366400001", "user": None, "imp": "i1"},
]


def _checked(folder: Path, file: Path, extra: str, *options: str) -> dict[str, Any]:
    config = folder / "adloom.toml"
    config.write_text(_TOML.format(extra=extra), encoding="utf-8")
    done = CliRunner().invoke(app, ["check-events", str(file), "--config", str(config), "--json", *options])
    assert done.exit_code == 1, done.output
    found: dict[str, Any] = json.loads(done.output)
    return found


def _write(place: Path) -> None:
    names = list(_ROWS[0])
    match place.suffix:
        case ".jsonl":
            place.write_text("".join(f"{json.dumps(row)}\n" for row in _ROWS), encoding="utf-8")
        case ".csv" | ".tsv":
            delimiter = "," if place.suffix == ".csv" else "\t"
            cells = [names, *([row[name] or "" for name in names] for row in _ROWS)]
            place.write_text("".join(f"{delimiter.join(row)}\n" for row in cells), encoding="utf-8")
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(_ROWS), place)
        case ".avro":
            fields = [{"name": name, "type": ["null", "string"]} for name in names]
            with place.open("wb") as out:
                fastavro.writer(out, {"type": "record", "name": "Click", "fields": fields}, _ROWS)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.jsonl", "json"), ("a.csv", "csv"), ("a.tsv", "csv"), ("a.parquet", "parquet"), ("a.avro", "avro")],
)
def test_files_of_every_format_are_checked_alike(tmp_path: Path, name: str, kind: str) -> None:
    _write(tmp_path / name)
    found = _checked(tmp_path, tmp_path / name, f'format = "{kind}"')
    assert (found["records"], found["ok"]) == (3, 1)
    reasons = {one["verdict"]: one["example"]["reason"] for one in found["verdicts"]}
    assert reasons == {
        "ok": "",
        "invalid_event_time": 'event_time = timestamp_millis($.ts): $.ts is "today"',
        "missing_user_id": "user_id = $.user: $.user is missing",
    }
    assert found["verdicts"][0]["example"]["event"]["event_time"] == "2026-03-01T12:00:00Z"


def test_a_row_that_cannot_be_read_is_counted_by_its_verdict(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,ts,user,imp\nk1,1772366400000,u1,i1\nk2\n", encoding="utf-8")
    found = _checked(tmp_path, tmp_path / "a.csv", 'format = "csv"')
    assert [(one["verdict"], one["records"], one["example"]["reason"]) for one in found["verdicts"]] == [
        ("ok", 1, ""),
        ("invalid_encoding", 1, "the row has 1 cells, and there are 4 columns"),
    ]


def test_a_source_that_is_named_says_how_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("k1|1772366400000|u1|i1\nk2|today|u|i\n", encoding="utf-8")
    extra = 'format = "csv"\ncolumns = "id,ts,user,imp"\ndelimiter = "|"'
    assert _checked(tmp_path, tmp_path / "a.log", extra, "--source", "ads")["ok"] == 1


def test_sources_that_read_a_format_in_different_ways_need_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n", encoding="utf-8")
    one = _TOML.format(extra='format = "csv"\npath = "one"')
    other = _TOML.format(extra='format = "csv"\npath = "two"\ndelimiter = ";"').replace("source.ads", "source.b")
    (tmp_path / "adloom.toml").write_text(one + other, encoding="utf-8")
    done = CliRunner().invoke(app, ["check-events", str(tmp_path / "a.csv"), "--config", str(tmp_path / "adloom.toml")])
    assert done.exit_code != 0
    assert "--source" in str(done.exception or done.output)


def _own(event_type: str, event_id: str, **fields: object) -> str:
    event = {"event_type": event_type, "event_id": event_id, "event_time": "2026-03-01T12:00:00Z", "user_id": "u"}
    return f"{json.dumps(event | fields)}\n"


def _of_clicks(folder: Path, *clicks: str, lower_ids: bool = False) -> tuple[dict[str, Any], str]:
    """What check-events says of two impressions and clicks on ``clicks``: as JSON, and as text."""
    ad = {"campaign_id": "c", "ad_id": "a"}
    lines = [_own("click", f"k{number}", impression_id=clicked) for number, clicked in enumerate(clicks)]
    lines += [_own("impression", "8F3C", **ad), _own("impression", "x1", **ad)]
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    config = folder / "adloom.toml"
    config.write_text(f"[ingest]\nlower_ids = {str(lower_ids).lower()}\n", encoding="utf-8")
    command = ["check-events", str(folder / "a.jsonl"), "--config", str(config)]
    as_json, as_text = (CliRunner().invoke(app, [*command, *more]) for more in (["--json"], []))
    assert (as_json.exit_code, as_text.exit_code) == (0, 0), as_json.output
    return json.loads(as_json.output), " ".join(as_text.output.split())


def test_clicks_that_match_an_impression_only_without_case_are_counted_with_the_setting_to_use(tmp_path: Path) -> None:
    found, text = _of_clicks(tmp_path, "8f3c", "8f3C", "x1", "8F3C", "nowhere")
    assert found["other_case"] == {"events": 2, "impression_id": "8f3c", "event_id": "8F3C"}
    assert "2 clicks name an impression" in text
    assert "8f3c" in text
    assert "ingest.lower_ids" in text


def _hints(folder: Path, *lines: str, config: str = "") -> tuple[dict[str, Any], str]:
    """What check-events says of ``lines`` besides their verdicts: as JSON, and as text."""
    (folder / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "adloom.toml").write_text(config, encoding="utf-8")
    command = ["check-events", str(folder / "a.jsonl"), "--config", str(folder / "adloom.toml")]
    as_json, as_text = (CliRunner().invoke(app, [*command, *more]) for more in (["--json"], []))
    assert (as_json.exit_code, as_text.exit_code) == (0, 0), as_json.output
    found, plain = json.loads(as_json.output), {"records", "events", "ok", "amounts", "nobody", "verdicts"}
    return {name: hint for name, hint in found.items() if name not in plain and hint}, " ".join(as_text.output.split())


_AD = {"campaign_id": "c", "ad_id": "a"}


def _early(seconds: str, name: str) -> list[str]:
    shown = _own("impression", name, event_time=f"2026-03-01T12:00:{seconds}Z", **_AD)
    return [_own("click", f"k-{name}", impression_id=name), shown]


@pytest.mark.parametrize(("tolerance", "early"), [("0s", 3), ("400ms", 2), ("1s", 1), ("5s", 0)])
def test_clicks_a_moment_before_their_impression_are_counted_with_the_setting_to_use(
    tmp_path: Path, tolerance: str, early: int
) -> None:
    again = _own("click", "again", impression_id="i2", event_time="2026-03-01T12:00:01Z")
    lines = [*_early("00.4", "i1"), *_early("02", "i2"), *_early("00", "i3"), again]
    found, text = _hints(tmp_path, *lines, config=f'[attribute]\ntolerance = "{tolerance}"\n')
    assert found == ({"early_clicks": {"events": early, "impression_id": "i2", "early_ms": 2000}} if early else {})
    assert ("attribute.tolerance" in text) == bool(early)


def test_events_that_share_an_id_and_differ_are_counted_with_what_differs(tmp_path: Path) -> None:
    same = _own("impression", "i1", **_AD)
    found, text = _hints(tmp_path, same, same, _own("impression", "i1", **(_AD | {"campaign_id": "d"})))
    assert found == {
        "other_contents": {
            "events": 1,
            "event_type": "impression",
            "event_id": "i1",
            "differing": ["campaign_id"],
        },
        "repeated_ids": {"events": 2, "event_type": "impression", "event_id": "i1", "apart_s": 0},
    }
    assert "1 event has the id of an earlier event, such as impression i1 (with another campaign_id)" in text


def test_an_order_number_that_means_nothing_is_shown(tmp_path: Path) -> None:
    def conversion(number: int, user: str, order: str) -> str:
        worth = {"conversion_type": "purchase", "value_micros": 1, "currency": "EUR"}
        return _own("conversion", f"p{number}", **(worth | {"user_id": user, "order_id": order}))

    nothing = [conversion(number, f"u{number}", "0") for number in range(4)]
    orders = [conversion(number, "u1", f"o{number // 2}") for number in range(4, 8)]
    found, text = _hints(tmp_path, *orders, *nothing)
    assert found == {"shared_orders": {"events": 4, "order_id": "0", "conversions": 4, "users": 4}}
    assert 'such as "0" (4 conversions of 4 users)' in text
    assert _hints(tmp_path, *orders)[0] == {}


@pytest.mark.parametrize("lower_ids", [False, True])
def test_nothing_is_said_of_case_where_ids_match(tmp_path: Path, lower_ids: bool) -> None:  # noqa: FBT001
    found, text = _of_clicks(tmp_path, "8f3c" if lower_ids else "8F3C", "x1", "nowhere", lower_ids=lower_ids)
    assert found["other_case"] is None
    assert "lower_ids" not in text


def test_events_of_nobody_are_counted_by_the_id_that_they_came_with(tmp_path: Path) -> None:
    users = ["u1", "unknown", "Unknown", "0", "unknown", None]
    rows = [_ROWS[0] | {"user": user} for user in users]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    found = _checked(tmp_path, tmp_path / "a.jsonl", "")
    assert (found["ok"], found["nobody"]) == (5, {"unknown": 2, "Unknown": 1, "0": 1})
    shown = CliRunner().invoke(app, ["check-events", str(tmp_path / "a.jsonl"), "--config", f"{tmp_path}/adloom.toml"])
    assert 'The user of 4 of them is nobody (ingest.nobody): "unknown" 2, "Unknown" 1, "0" 1' in shown.output


def test_the_content_of_a_sample_is_looked_at_too(tmp_path: Path) -> None:
    """Ids that repeat, unknown impressions, one user with most events, times and currencies that look wrong."""
    user = "00000000-1111-0000-0000-000000000000"
    lines = [_own("impression", f"i{n}", user_id=user if n % 4 else f"u{n}", **_AD) for n in range(40)]
    lines += [_own("click", f"k{n}", impression_id=f"x{n}", user_id="v") for n in range(3)]
    lines += [_own("impression", "i1", event_time="2026-03-03T12:00:00Z", user_id=user, **_AD)]
    lines += [_own("activity", "old", event_time="2001-01-01T00:00:00Z", user_id="v")]
    lines += [
        _own("conversion", f"c{n}", user_id=f"w{n}", conversion_type="sale", value_micros=n * 10**6, currency=code)
        for n, code in enumerate(("EUR", "JPY", "EUR"), start=1)
    ]
    found, text = _hints(tmp_path, *lines)
    assert found["repeated_ids"] | {"apart_s": 0} == {
        "events": 1,
        "event_type": "impression",
        "event_id": "i1",
        "apart_s": 0,
    }
    assert "further apart than deduplicate.watermark, 3h, count as others" in text
    assert found["unknown_impressions"] == {"events": 3, "impression_id": "x0"}
    assert found["frequent_user"] == {"events": 31, "user_id": user}
    assert found["currencies"] == {"events": 3, "currencies": {"EUR": 2, "JPY": 1}}
    assert "value_micros: smallest 1,000,000, median 2,000,000, largest 3,000,000 millionths" in text
    same = [_own("activity", f"a{n}") for n in range(30)]
    assert _hints(tmp_path, *same)[0]["times"]["events"] == 30


def test_lists_and_fields_that_no_mapping_reads_are_named(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": f"e{n}", "ts": 1772366400 + n, "u": "u", "site": {"page": n}, "parts": [{"a": n}, {"a": 0}]})
        for n in range(3)
    ]
    config = (
        '[source.web]\nevent_type = "\'activity\'"\n[source.web.map]\nevent_id = "$.id"\n'
        'event_time = "timestamp_seconds($.ts)"\nuser_id = "$.u"\ndata = "$.parts[0].a"\n'
    )
    found, text = _hints(tmp_path, *(f"{line}\n" for line in lines), config=config)
    assert found["unmapped"] == [
        (
            "$.parts has up to 2 elements, 6 in 3 records, and no mapping reads each of them; if they are events, set "
            'each = "$.parts"'
        ),
        "no mapping reads $.site.page; keep carries a column on to gold",
    ]
    assert "keep carries a column on to gold" in text
    listed = config.replace("event_type =", 'each = "$.parts"\nevent_type =').replace('"$.', '"$$.')
    listed = listed.replace('each = "$$.', 'each = "$.').replace("($.ts)", "($$.ts)").replace("$$.parts[0].a", "$.a")
    assert _hints(tmp_path, *(f"{line}\n" for line in lines), config=listed)[0]["unmapped"] == [
        "no mapping reads $.site.page; keep carries a column on to gold"
    ]
    within = [
        json.dumps({"seats": [{"s": 1, "bids": json.loads(line)["parts"]}] * 2} | json.loads(line)) for line in lines
    ]
    unread = _hints(tmp_path, *(f"{line}\n" for line in within), config=listed)[0]["unmapped"]
    assert unread[1].endswith('set each = "$.seats[*].bids"')
    deep = listed.replace('each = "$.parts"', 'each = "$.seats[*].bids"').replace("$$.", "$$$.")
    assert _hints(tmp_path, *(f"{line}\n" for line in within), config=deep)[0]["unmapped"][1:] == [
        "no mapping reads $.seats[0].s, $.site.page, $.parts[0].a; keep carries a column on to gold"
    ]
