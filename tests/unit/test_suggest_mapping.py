"""``adloom suggest-mapping``: what its drafts are worth, and what it refuses."""

import gzip
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.cli.suggest_mapping import drafted, read_sample, suggest_mapping
from spark_jobs.errors import SourceError
from tests.support.draft_scores import Scores, scores_of, settings_of
from tests.support.drivers import ADLOOM
from tests.support.other_formats import FORMATS, Log
from tests.support.public_formats import PUBLIC_FORMATS

_CHECKOUT = Path(__file__).parents[2]
_PAGE = (_CHECKOUT / "docs" / "events.md").read_text(encoding="utf-8")
_LIMIT = 10_000
_ALL = FORMATS | PUBLIC_FORMATS


def written(log: Log, folder: Path) -> Path:
    file = folder / log.name
    file.write_bytes(gzip.compress(log.text.encode()) if file.suffix == ".gz" else log.text.encode())
    return file


def file_of(folder: Path, *records: dict[str, Any], name: str = "sample.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def drafted_source(file: Path) -> dict[str, Any]:
    sources = tomllib.loads(drafted(file, _LIMIT)[0])["source"]
    assert len(sources) == 1, list(sources)
    return dict(next(iter(sources.values())))


@pytest.mark.parametrize("name", _ALL)
def test_every_field_of_a_format_is_right(name: str, tmp_path: Path) -> None:
    log = _ALL[name]()
    file = written(log, tmp_path)
    draft, _ = drafted(file, _LIMIT)
    scores = scores_of(draft, [record for _, record in read_sample(file, _LIMIT)[1]], log.events)
    assert scores.fields == dict.fromkeys(scores.fields, "right")
    assert {"event_type", "event_id", "event_time", "user_id"} <= scores.fields.keys()
    assert scores.ok >= 0.95
    documented = (
        f"(`{name}`) | {len(log.events):,} | {scores.count('right')} of {len(scores.fields)} | {scores.ok:.1%} |"
    )
    assert documented in _PAGE


@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [
        pytest.param("$.uid", "$.ad", {"user_id": "wrong"}, id="another-path"),
        pytest.param("timestamp_millis($.ts)", "timestamp_millis($.rcv)", {"event_time": "wrong"}, id="another-time"),
        pytest.param("micros($.price)", "micros($.none)", {"cost_micros": "missing"}, id="no-price"),
        pytest.param('"$.page"', '"$.none"', {"data": "missing"}, id="no-data"),
        pytest.param("'imp' then 'impression'", "'imp' then 'activity'", {"event_type": "wrong"}, id="another-type"),
    ],
)
def test_the_scores_show_what_is_not_right(good: str, bad: str, expected: dict[str, str], tmp_path: Path) -> None:
    log = FORMATS["flat_millis"]()
    file = written(log, tmp_path)
    draft, _ = drafted(file, _LIMIT)
    assert good in draft
    lines = (line.replace(good, bad) if not line.startswith("#") else line for line in draft.splitlines())
    scores: Scores = scores_of("\n".join(lines), [record for _, record in read_sample(file, _LIMIT)[1]], log.events)
    assert expected.items() <= scores.fields.items()


def test_flat_records_of_three_types_are_one_source(tmp_path: Path) -> None:
    assert drafted_source(written(FORMATS["flat_millis"](), tmp_path)) == {
        "event_type": "case when $.type = 'imp' then 'impression' when $.type = 'clk' then 'click' else 'activity' end",
        "map": {
            "event_id": "$.id",
            "event_time": "timestamp_millis($.ts)",
            "user_id": "$.uid",
            "campaign_id": "$.cmp",
            "ad_id": "$.ad",
            "cost_micros": "micros($.price)",
            "impression_id": "$.imp",
            "data": "$.page",
        },
    }


def test_types_with_names_of_their_own_are_a_source_each(tmp_path: Path) -> None:
    sources = tomllib.loads(drafted(written(FORMATS["two_shapes"](), tmp_path), _LIMIT)[0])["source"]
    assert {name: (source["when"], source["map"]["event_id"]) for name, source in sources.items()} == {
        "two_shapes_shown": ("$.eventType = 'BANNER_IMPRESSION'", "$.impressionId"),
        "two_shapes_clicked": ("$.eventType = 'BANNER_CLICK'", "$.clickId"),
    }


def test_readings_of_a_weather_station_are_activity() -> None:
    # A real log: nothing in it is an ad, a user or an id.
    draft, checked = drafted(_CHECKOUT / "examples" / "weather.jsonl.gz", _LIMIT)
    assert tomllib.loads(draft)["source"] == {
        "weather": {
            "event_type": "'activity'",
            "map": {
                "event_id": "sha2(concat($.station_id, '|', $.timestamp), 256)",
                "event_time": "$.timestamp",
                "user_id": "$.station_id",
            },
        }
    }
    assert checked.ok == checked.records
    assert "check: are all records of the type activity?" in draft
    assert "check: nothing is named like a user" in draft


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("edge_log", {"edge_log": {"format": "csv", "delimiter": "\t"}}),
        ("app_attribution", {"app_attribution": {"format": "csv"}}),
        ("flat_millis", {"flat_millis": {}}),
    ],
)
def test_the_format_is_in_the_draft(name: str, expected: dict[str, dict[str, str]], tmp_path: Path) -> None:
    assert settings_of(drafted(written(_ALL[name](), tmp_path), _LIMIT)[0])[1] == expected


def test_what_is_left_for_a_person_is_said(tmp_path: Path) -> None:
    records = [{"kind": "imp" if n % 2 else "boot", "at": f"2026-03-0{n % 9 + 1}", "n": n % 7} for n in range(60)]
    draft, checked = drafted(file_of(tmp_path, *records), _LIMIT)
    source = tomllib.loads(draft)["source"]["sample"]
    assert source["may_lack"] == "user_id"
    checks = [line for line in draft.splitlines() if line.startswith("# check: ")]
    for part in (
        "nothing reads like the campaign_id, which every impression needs",
        "nothing in the records reads like a user",
        'these count as activity: "boot"',
        "it says only the day",
    ):
        assert [line for line in checks if part in line], part
    assert checked.ok == 30
    assert "missing_campaign_id: 30" in draft


def test_without_a_time_a_draft_still_loads(tmp_path: Path) -> None:
    draft, checked = drafted(file_of(tmp_path, {"a": "b"}), _LIMIT)
    settings, _ = settings_of(draft)
    assert settings.sources["sample"].map["event_time"] == "$.event_time"
    assert "# check: name the path of the time" in draft
    assert checked.ok == 0


def test_native_events_are_recognised(tmp_path: Path) -> None:
    records = [
        {"event_type": "activity", "event_id": f"e{n}", "event_time": "2026-03-01T12:00:00Z", "user_id": f"u{n % 5}"}
        for n in range(60)
    ]
    assert 'format = "adloom" does the same without a map' in drafted(file_of(tmp_path, *records), _LIMIT)[0]


def test_repetitions_and_broken_lines_do_not_change_a_draft(tmp_path: Path) -> None:
    log = FORMATS["flat_millis"]()
    lines = log.text.splitlines()
    broken = [line for number, line in enumerate(lines) for line in [line] * (1 + (number % 5 == 0))]
    broken[10:10] = ["{", "not JSON", "[1]", '{"id": {"x": 1}, "ts": "soon", "uid": true}', ""]
    file, faulty = written(log, tmp_path), tmp_path / "flat_millis.json"
    faulty.write_text("\n".join(broken), encoding="utf-8")
    assert drafted_source(faulty) == drafted_source(file)
    assert "600 records are exactly like an earlier one." in drafted(faulty, _LIMIT)[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("a.json", "[1, 2]", "holds no record", id="array of numbers"),
        pytest.param("a.jsonl", "", "holds no record", id="empty"),
        pytest.param("a.jsonl", "just text\n", "is neither JSON nor CSV: its first line is 'just text'", id="text"),
        pytest.param("a.csv", "1,2\n3,4\n", "its first line has a column named '1'", id="no-header"),
        pytest.param("a.csv", "id,id\n3,4\n", "two columns are named 'id'", id="a-name-twice"),
        pytest.param("a.csv", "id,time\n", "holds no record", id="header-only"),
        pytest.param("a.csv.gz", "id,name\n", "holds no record", id="no-gzip"),
        pytest.param("a.jsonl.gz", gzip.compress(b'{"id": 1}')[:-9], "cannot be read", id="a-gzip-that-is-cut-off"),
    ],
)
def test_what_cannot_be_drafted(name: str, content: str | bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SourceError) as error:
        drafted(file, _LIMIT)
    assert message in str(error.value)
    assert str(file) in str(error.value)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        drafted(tmp_path / "none.jsonl", _LIMIT)
    with pytest.raises(SourceError, match="is a folder"):
        drafted(tmp_path, _LIMIT)


def test_rows_of_csv_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes('id;name;x\r\n1;"a;\nb";2\r\n2\r\n3;c;4;5\r\n'.encode("utf-8-sig"))
    shape, rows = read_sample(file, 4)
    assert (shape.encoding.format, shape.encoding.delimiter, shape.unread[0]) == ("csv", ";", 2)
    assert [(place, json.loads(row)) for place, row in rows] == [("row 0", {"id": "1", "name": "a;\nb", "x": "2"})]


def test_each_element_of_a_list_is_drafted_as_an_event(tmp_path: Path) -> None:
    kinds = ("imp", "clk", "page")
    records = [
        {
            "sent": "2026-03-01T12:00:00.123456789Z",
            "user": {"id": f"u{batch % 40}"},
            "events": [
                {"id": f"e{batch}-{n}", "type": kinds[n % 3], "campaign": n, "ad": n, "imp": f"e{batch}-0"}
                for n in range(1 + batch % 6)
            ],
        }
        for batch in range(400)
    ]
    file = tmp_path / "batches.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    draft, tried = drafted(file, 10_000)
    assert (tried.ok, tried.events, tried.records) == (1396, 1396, 400)
    sources = settings_of(draft)[0].source.values()
    assert {source.each for source in sources} == {"$.events"}
    assert {source.map["user_id"] for source in sources} == {"$$.user.id"}
    assert "# check: each element of $.events is taken for an event of its own." in draft


def test_each_element_of_a_list_within_a_list_is_drafted_as_an_event(tmp_path: Path) -> None:
    records = [
        {
            "batch": batch,
            "app": f"a{batch % 7}",
            "users": [
                {
                    "user_id": f"u{one}",
                    "events": [
                        {"id": f"e{batch}-{one}-{n}", "ts": 1772366400123 + batch + n} for n in range(1 + batch % 3)
                    ],
                }
                for one in range(1 + batch % 4)
            ],
        }
        for batch in range(200)
    ]
    file = tmp_path / "users.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    draft, tried = drafted(file, 10_000)
    events = sum((1 + batch % 3) * (1 + batch % 4) for batch in range(200))
    assert (tried.ok, tried.events, tried.records) == (events, events, 200)
    (source,) = settings_of(draft)[0].source.values()
    assert source.each == "$.users[*].events"
    assert source.map["user_id"] == "$$.user_id"
    assert source.map["event_time"] == "timestamp_millis($.ts)"
    assert "#   $$$.app: text" in draft


def test_a_list_that_is_no_list_of_events_is_named(tmp_path: Path) -> None:
    records = [
        {"id": n, "ts": 1772366400 + n, "uid": n % 9, "items": [{"sku": n}, {"sku": n + 1}][: 1 + n % 2]}
        for n in range(100)
    ]
    file = tmp_path / "orders.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    draft, tried = drafted(file, 10_000)
    assert (tried.ok, tried.records) == (100, 100)
    assert "$.items has up to 2 elements, 150 in 100 records: as [0], only one of them is read" in draft.replace(
        "\n#   ", " "
    )


def test_a_file_of_another_name_is_named_in_the_draft(tmp_path: Path) -> None:
    table = "id|ts\n" + "".join(f"{n}|{1772366400 + n}\n" for n in range(9))
    for name, source, files in (
        ("a.txt", "a", "*.txt"),
        ("a.csv", "a", ""),
        ("a.b.tsv.gz", "a_b", ""),
        ("a", "a", "*"),
    ):
        (tmp_path / name).write_bytes(gzip.compress(table.encode()) if name.endswith(".gz") else table.encode())
        draft, _ = drafted(tmp_path / name, _LIMIT)
        named = {"files": files} if files else {}
        assert settings_of(draft)[1] == {source: {"format": "csv", "delimiter": "|", **named}}


@pytest.mark.parametrize(
    ("name", "written_as"),
    [
        ("array.json", lambda rows: json.dumps(rows).encode()),
        ("pretty.json", lambda rows: json.dumps(rows, indent=2).encode()),
        ("over_lines.json", lambda rows: "".join(json.dumps(row, indent=2) for row in rows).encode("utf-16")),
        ("firehose.log.gz", lambda rows: gzip.compress("".join(map(json.dumps, rows)).encode())),
        ("latin.jsonl", lambda rows: "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode("cp1252")),
    ],
)
def test_values_are_drafted_however_they_lie_in_the_file(
    name: str, written_as: Callable[[list[Any]], bytes], tmp_path: Path
) -> None:
    rows = [{"id": f"e{n}", "ts": 1772366400 + n, "user": f"Zo\u00eb {n % 7}", "page": "/a"} for n in range(50)]
    (tmp_path / name).write_bytes(written_as(rows))
    draft, tried = drafted(tmp_path / name, _LIMIT)
    assert (tried.ok, tried.records) == (50, 50)
    assert ('files = "*.log.gz"' in draft) == name.startswith("firehose")
    assert ('charset = "windows-1252"' in draft) == name.startswith("latin")


def test_the_limit_is_kept(tmp_path: Path) -> None:
    assert len(read_sample(written(FORMATS["flat_millis"](), tmp_path), 7)[1]) == 7
    assert len(read_sample(written(FORMATS["server_log"](), tmp_path), 7)[1]) == 7


def test_an_edited_draft_is_not_overwritten(tmp_path: Path) -> None:
    output = tmp_path / "adloom.toml"
    output.write_text("mine", encoding="utf-8")
    with pytest.raises(SourceError, match="exists, and may have been edited"):
        suggest_mapping(file_of(tmp_path, {"id": 1}), limit=1, output=output)
    assert output.read_text(encoding="utf-8") == "mine"


def test_check_events_runs_with_the_draft_at_once(tmp_path: Path) -> None:
    file, draft = written(FORMATS["snowplow"](), tmp_path), tmp_path / "draft.toml"
    done = _adloom("suggest-mapping", str(file), "--output", str(draft))
    assert (done.returncode, done.stderr) == (0, "")
    assert "1,000 of 1,000 records that were tried fit (100.0%)" in done.stdout
    done = _adloom("check-events", str(file), "--config", str(draft))
    assert done.returncode == 0
    assert "3,000 of 3,000 records fit (100.0%)" in done.stdout


def test_a_printed_draft_is_toml_and_nothing_else(tmp_path: Path) -> None:
    file = file_of(tmp_path, {"id": "[bold]x[/bold]", "t": 1772366400, "long": ":cat: " * 60})
    done = _adloom("suggest-mapping", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert tomllib.loads(done.stdout)["source"]["sample"]["map"]["event_time"] == "timestamp_seconds($.t)"


def _adloom(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ADLOOM, *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_spark_is_not_loaded(tmp_path: Path) -> None:
    file = file_of(tmp_path, {"id": "1", "ts": 1772366400})
    program = (
        "import sys\nfrom pathlib import Path\nfrom spark_jobs.cli.suggest_mapping import drafted\n"
        f"drafted(Path({str(file)!r}), 10)\n"
        "print([name for name in ('pyspark', 'pandas', 'pyarrow', 'great_expectations') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_logs_of_web_servers_are_drafted(tmp_path: Path) -> None:
    lines = "".join(
        f'198.18.0.{n} - - [17/May/2015:10:05:{n:02} +0000] "GET /a?uid=u{n} HTTP/1.1" 200 3 "-" "Agent \\"{n}\\""\n'
        for n in range(50)
    )
    (tmp_path / "access.log").write_text(lines)
    shape, records = read_sample(tmp_path / "access.log", _LIMIT)
    assert (shape.encoding.format, shape.encoding.pattern, shape.files) == ("text", "combined", "")
    assert json.loads(records[3][1]) == {
        "ip": "198.18.0.3",
        "user": "-",
        "time": "17/May/2015:10:05:03 +0000",
        "status": "200",
        "bytes": "3",
        "request": "GET /a?uid=u3 HTTP/1.1",
        "referrer": "-",
        "agent": 'Agent \\"3\\"',
    }
    assert 'format = "text"\npattern = "combined"' in drafted(tmp_path / "access.log", _LIMIT)[0]
    head = "#Version: 1.0\n#Fields: date time c-ip cs-uri-stem x-edge-request-id\n"
    rows = "".join(f"2026-03-01\t12:00:{n:02}\t192.0.2.7\t/imp.gif\tr{n}==\n" for n in range(50))
    for name, text in (("front.tsv", head + rows), ("iis.log", (head + rows).replace("\t", " "))):
        (tmp_path / name).write_text(text)
        draft, tried = drafted(tmp_path / name, _LIMIT)
        assert 'comment = "#"' in draft
        assert "$['x-edge-request-id']: text, 100.0%, 50 different" in draft
        assert tried.records == 50
