"""A reset with changed settings, for each setting that preflight names: it loses no row and doubles none.

Each case runs a query half-way with the old settings, resets its checkpoint, and runs it to the end with the new ones.
What the query had decided by then must be the rows of the old settings, everything else those of the new ones, both
according to an independent computation over the whole input.
"""

import json
import os
import random
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.config.choices import JoinType, StatsOutput
from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import FIELDS
from spark_jobs.contract.events import CLICK, IMPRESSION, VISIT_TYPES
from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    CAMPAIGN_STATS,
    MOVING_AVERAGES,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Table,
)
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.open import open_lake
from spark_jobs.places import CHECKPOINTS
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.campaign_stats.query import NAME as CAMPAIGN_STATS_QUERY
from spark_jobs.queries.deduplicate.query import NAME as DEDUPLICATE
from spark_jobs.queries.manifest import FILES
from spark_jobs.queries.moving_average.query import NAME as MOVING_AVERAGE
from spark_jobs.queries.notes import last_note
from spark_jobs.queries.registry import find_query, readers_of
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from spark_jobs.queries.user_status.query import NAME as USER_STATUS_QUERY
from spark_jobs.spark.conf import streaming_conf
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.streams.checkpoints import claim
from spark_jobs.streams.drain import drain_lead
from spark_jobs.streams.heartbeats import append_heartbeat
from spark_jobs.streams.reset import reset
from spark_jobs.streams.start import start
from tests.support.equality import generate_source
from tests.support.feed import assert_feed_equals_table
from tests.support.lakes import read_table
from tests.support.lateness import PATIENT
from tests.support.oracle import Expected, Row, assert_same_rows, comparable, compared_columns, expected_tables
from tests.support.runs import ONE_BY_ONE, run_in

pytestmark = pytest.mark.derived

_Changes = dict[str, dict[str, Any]]
_BASE: _Changes = {"ingest": ONE_BY_ONE, **PATIENT}
_FILES, _HALF, _DISORDER = 6, 3, 150


def _settings(changed: _Changes) -> Settings:
    both = {**dict.fromkeys(_BASE), **dict.fromkeys(changed)}
    return Settings.model_validate({name: _BASE.get(name, {}) | changed.get(name, {}) for name in both})


@pytest.fixture(scope="module")
def silver_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Path]:
    """A lake whose silver holds a day, a commit for each file of the source, and that source."""
    folder = tmp_path_factory.mktemp("silver")
    source, lake = (
        _shuffled(generate_source(folder / "source", events=2400, seed=83, files=_FILES)),
        open_lake(str(folder / "l")),
    )
    run_in(spark, _settings({}), lake, source, drain=False)
    return lake, source


def _shuffled(source: Path) -> Path:
    """``source`` with events up to an hour or so out of order, also between files: so much is open half-way.

    Every fifth click comes up to ten minutes before its impression.
    """
    files, rng = sorted(source.iterdir()), random.Random(83)
    lines = _with_early_clicks([line for file in files for line in file.read_bytes().splitlines()])
    late = [line for _, line in sorted(enumerate(lines), key=lambda one: one[0] + rng.uniform(0, _DISORDER))]
    for number, file in enumerate(files):
        share = late[number * len(late) // len(files) : (number + 1) * len(late) // len(files)]
        file.write_bytes(b"\n".join(share) + b"\n")
        os.utime(file, (number, number))
    return source


def _with_early_clicks(lines: list[bytes]) -> list[bytes]:
    shown = {key: time for kind, key, time, _ in map(_event, lines) if kind == IMPRESSION}
    return [_early(line, shown) for line in lines]


def _early(line: bytes, shown: Mapping[str, datetime]) -> bytes:
    kind, key, time, of = _event(line)
    if kind != CLICK or of not in shown or (chosen := zlib.crc32(key.encode())) % 5:
        return line
    moved = shown[of] - timedelta(seconds=chosen % 600)
    return line.replace(f"{time:%Y-%m-%dT%H:%M:%S}".encode(), f"{moved:%Y-%m-%dT%H:%M:%S}".encode())


def _event(line: bytes) -> tuple[str, str, datetime, str]:
    """Type, id, time and impression of the event of a line; empty ones of a line that is broken."""
    try:
        event = json.loads(line)
        time = datetime.fromisoformat(event["event_time"])
        return str(event["event_type"]), str(event["event_id"]), time, str(event.get("impression_id"))
    except (ValueError, KeyError, TypeError):
        return "", "", datetime.min.replace(tzinfo=UTC), ""


@dataclass
class HalfWay:
    """A lake of which a query sees only the first commits of its source table; the others are hidden."""

    lake: Lake
    source: Path
    query: str
    hidden: list[Path] = field(default_factory=list)

    def hide(self) -> None:
        for file in self._commits()[_HALF:]:
            self.hidden.append(file.rename(file.with_name(f"hidden_{file.name}")))

    def reveal(self) -> Iterator[None]:
        for file in self.hidden:
            file.rename(file.with_name(file.name.removeprefix("hidden_")))
            yield

    def _commits(self) -> list[Path]:
        table = find_query(self.query).reads[0]
        return sorted((self.lake.path / table.path / "_delta_log").glob("[0-9]*.json"))


def _start(spark: SparkSession, settings: Settings, lake: Lake, query: str) -> StreamingQuery:
    for key, value in streaming_conf(settings).items():
        spark.conf.set(key, value)
    claim(lake, settings, [query], source=FILES)
    return start(find_query(query), OpenLake.of(lake, settings, spark))


def _half_way(spark: SparkSession, silver_lake: tuple[Lake, Path], folder: Path, old: Settings, query: str) -> HalfWay:
    """A copy of the lake in which ``query`` has run over the first half of its source, batch by batch."""
    whole, source = silver_lake
    copy = Path(shutil.copytree(whole.path, folder / "lake"))
    shutil.rmtree(copy / CHECKPOINTS)
    for one in (find_query(query), *readers_of(find_query(query).writes)):
        shutil.rmtree(copy / one.writes.path, ignore_errors=True)
    half = HalfWay(open_lake(str(copy)), source, query)
    half.hide()
    first, *rest = half._commits()
    later = [file.rename(file.with_name(f"hidden_{file.name}")) for file in rest]
    assert first.exists()
    running = _start(spark, old, half.lake, query)
    running.processAllAvailable()
    for file in later:
        file.rename(file.with_name(file.name.removeprefix("hidden_")))
        running.processAllAvailable()
    running.stop()
    return half


def _to_the_end(spark: SparkSession, half: HalfWay, new: Settings, *, drain: bool = True) -> None:
    running = _start(spark, new, half.lake, half.query)
    for _ in half.reveal():
        running.processAllAvailable()
    if drain and half.query != DEDUPLICATE:
        end = max(row[2] for row in read_table(half.lake, SILVER_EVENTS)).replace(tzinfo=UTC) + drain_lead(new)
        for beat in (1, 2):
            append_heartbeat(
                OpenLake.of(half.lake, Settings(), spark), end, f"beat-{beat}", writer=f"beat-{beat}", number=0
            )
            running.processAllAvailable()
    running.stop()


@cache
def _expected(source: Path, changed: str) -> Expected:
    return expected_tables(source, Settings.model_validate_json(changed), datetime.now(UTC))


def _oracle(source: Path, settings: Settings, table: Table) -> list[Row]:
    return _expected(source, settings.model_dump_json(exclude_defaults=True)).rows(table)


def _watermark(lake: Lake, query: str) -> datetime:
    note = last_note(lake, query)
    assert note is not None
    return datetime(1970, 1, 1) + timedelta(milliseconds=note.watermark_ms)  # noqa: DTZ001 as DuckDB gives times


def _decided(old: list[Row], new: list[Row], is_decided: Callable[[Row], bool]) -> list[Row]:
    return [row for row in old if is_decided(row)] + [row for row in new if not is_decided(row)]


def _cases(cases: Mapping[str, tuple[object, object]], *, quick: int = 1) -> list[ParameterSet]:
    """``cases`` as parameters; all but the first ``quick`` of them run with the slow tests only."""
    return [
        pytest.param(before, after, id=name, marks=() if number < quick else pytest.mark.slow)
        for number, (name, (before, after)) in enumerate(cases.items())
    ]


# Silver was written before the source kept the column, so each window has one row, and the column is null.
_BY_PLACE: _Changes = {
    "source": {
        "own": {
            "map": {name: f"$.{name}" for name in FIELDS},
            "keep": {"place": {"from": "$.ad_id"}},
        }
    },
    "campaign_stats": {"group_by": "place"},
}
_STATS: dict[str, tuple[_Changes, _Changes]] = {
    "append to update": ({}, {"campaign_stats": {"output": "update"}}),
    "update to append": ({"campaign_stats": {"output": "update"}}, {}),
    "longer windows": ({}, {"campaign_stats": {"window": "25min", "slide": "25min"}}),
    "longer windows that are updated": (
        {"campaign_stats": {"output": "update"}},
        {"campaign_stats": {"output": "update", "window": "25min", "slide": "25min"}},
    ),
    "shorter windows, and update to append": (
        {"campaign_stats": {"output": "update", "window": "30min", "slide": "30min"}},
        {"campaign_stats": {"window": "7min", "slide": "7min"}},
    ),
    "overlapping windows, and append to update": (
        {},
        {"campaign_stats": {"output": "update", "window": "30min", "slide": "10min"}},
    ),
    "another slide": (
        {"campaign_stats": {"window": "30min", "slide": "10min"}},
        {"campaign_stats": {"window": "30min", "slide": "15min"}},
    ),
    "longer reach": ({}, {"attribute": {"window": "2h"}}),
    "shorter reach": ({}, {"attribute": {"window": "5min"}}),
    "longer tolerance": ({}, {"attribute": {"tolerance": "20min"}}),
    "shorter tolerance": ({"attribute": {"tolerance": "20min"}}, {}),
    "longer reach, updated": (
        {"campaign_stats": {"output": "update"}},
        {"attribute": {"window": "2h"}, "campaign_stats": {"output": "update"}},
    ),
    "shorter reach, updated": (
        {"campaign_stats": {"output": "update"}},
        {"attribute": {"window": "5min"}, "campaign_stats": {"output": "update"}},
    ),
    "longer watermark": ({"campaign_stats": {"watermark": "150min"}}, {}),
    "shorter watermark": ({}, {"campaign_stats": {"watermark": "150min"}}),
    "state store": ({}, {"spark": {"state_store": "memory"}}),
    "state store, updated": (
        {"campaign_stats": {"output": "update"}},
        {"campaign_stats": {"output": "update"}, "spark": {"state_store": "memory"}},
    ),
    "by a column that is kept from now on": ({}, _BY_PLACE),
    "by a column that is kept, updated": (
        {"campaign_stats": {"output": "update"}},
        {**_BY_PLACE, "campaign_stats": {"output": "update", "group_by": "place"}},
    ),
    "no longer by a column": (_BY_PLACE, {"source": _BY_PLACE["source"]}),
    "join state": ({"spark": {"join_state": "by_key"}}, {}),
    "partitions": ({}, {"spark": {"shuffle_partitions": 3}}),
}


@pytest.mark.parametrize(("before", "after"), _cases(_STATS, quick=0))
def test_campaign_stats(
    before: _Changes, after: _Changes, spark: SparkSession, silver_lake: tuple[Lake, Path], tmp_path: Path
) -> None:
    old, new = _settings(before), _settings(after)
    half = _half_way(spark, silver_lake, tmp_path, old, CAMPAIGN_STATS_QUERY)
    final = _watermark(half.lake, CAMPAIGN_STATS_QUERY) - old.attribute.window
    rows = {name: _oracle(half.source, one, CAMPAIGN_STATS) for name, one in (("old", old), ("new", new))}
    found = read_table(half.lake, CAMPAIGN_STATS)
    if old.campaign_stats.output is StatsOutput.APPEND:
        assert_same_rows(found, [row for row in rows["old"] if row[1] <= final], CAMPAIGN_STATS)
    else:
        assert set(comparable(found, CAMPAIGN_STATS)) - set(rows["old"]), "no window was half full"
    assert found
    assert reset(OpenLake.of(half.lake, new, spark), CAMPAIGN_STATS_QUERY).open_events
    assert_feed_equals_table(half.lake, new.campaign_stats.feed)
    _to_the_end(spark, half, new)
    expected = _decided(rows["old"], rows["new"], lambda row: row[1] <= final)
    assert_same_rows(read_table(half.lake, CAMPAIGN_STATS), expected, CAMPAIGN_STATS)
    assert_feed_equals_table(half.lake, new.campaign_stats.feed)


_DEDUPLICATE: dict[str, tuple[_Changes, _Changes]] = {
    "for ever": ({}, {"deduplicate": {"mode": "forever"}}),
    "no longer for ever": ({"deduplicate": {"mode": "forever"}}, {}),
    "longer watermark": ({}, {"deduplicate": {"watermark": "6h"}}),
    "state store": ({}, {"spark": {"state_store": "memory"}}),
}


@pytest.mark.parametrize(("before", "after"), _cases(_DEDUPLICATE, quick=0))
def test_deduplicate(
    before: _Changes, after: _Changes, spark: SparkSession, silver_lake: tuple[Lake, Path], tmp_path: Path
) -> None:
    half = _half_way(spark, silver_lake, tmp_path, _settings(before), DEDUPLICATE)
    assert reset(OpenLake.of(half.lake, _settings(after), spark), DEDUPLICATE).open_events
    _to_the_end(spark, half, _settings(after))
    assert_same_rows(
        read_table(half.lake, SILVER_EVENTS), _oracle(half.source, _settings(after), SILVER_EVENTS), SILVER_EVENTS
    )


_ATTRIBUTE: dict[str, tuple[_Changes, _Changes]] = {
    "inner to full outer": ({"attribute": {"join": "inner"}}, {}),
    "full outer to inner": ({}, {"attribute": {"join": "inner"}}),
    "left outer to right outer": ({"attribute": {"join": "left_outer"}}, {"attribute": {"join": "right_outer"}}),
    "longer window": ({"attribute": {"window": "5min"}}, {}),
    "shorter window": ({}, {"attribute": {"window": "5min"}}),
    "longer tolerance": ({"attribute": {"tolerance": "1min"}}, {"attribute": {"tolerance": "1h"}}),
    "shorter tolerance": ({"attribute": {"tolerance": "1h"}}, {}),
    "longer window, inner": (
        {"attribute": {"window": "5min", "join": "inner"}},
        {"attribute": {"join": "inner"}},
    ),
    "longer watermarks": (
        {"attribute": {"click_watermark": "2h"}},
        {"attribute": {"impression_watermark": "3h"}},
    ),
    "state store": ({}, {"spark": {"state_store": "memory"}}),
    "join state": ({"spark": {"join_state": "by_key"}}, {}),
}


@pytest.mark.parametrize(("before", "after"), _cases(_ATTRIBUTE))
def test_attribute(
    before: _Changes, after: _Changes, spark: SparkSession, silver_lake: tuple[Lake, Path], tmp_path: Path
) -> None:
    old, new = _settings(before), _settings(after)
    half = _half_way(spark, silver_lake, tmp_path, old, ATTRIBUTE)
    emitted = Counter(comparable(read_table(half.lake, ATTRIBUTIONS), ATTRIBUTIONS))
    watermark = _watermark(half.lake, ATTRIBUTE)
    assert reset(OpenLake.of(half.lake, new, spark), ATTRIBUTE).open_events
    _to_the_end(spark, half, new)
    found = comparable(read_table(half.lake, ATTRIBUTIONS), ATTRIBUTIONS)
    assert not emitted - Counter(found), "what was emitted stays"
    assert_same_rows(
        read_table(half.lake, ATTRIBUTIONS), _attributions(half.source, old, new, watermark, set(emitted)), ATTRIBUTIONS
    )


def _attributions(source: Path, old: Settings, new: Settings, watermark: datetime, emitted: set[Row]) -> list[Row]:
    """Event by event: what was emitted; else what the new settings make of what was not decided."""
    status, impression, impression_time, click, click_time = (
        compared_columns(ATTRIBUTIONS).index(name)
        for name in ("status", "impression_id", "impression_time", "click_id", "click_time")
    )
    every = {
        name: one.model_copy(update={"attribute": one.attribute.model_copy(update={"join": JoinType.FULL_OUTER})})
        for name, one in (("old", old), ("new", new))
    }
    full = {name: _oracle(source, one, ATTRIBUTIONS) for name, one in every.items()}

    reach, early = (max(getattr(one.attribute, name) for one in (old, new)) for name in ("window", "tolerance"))
    gone = {row[impression] for row in emitted if row[status] == "unclicked"}
    gone |= {
        row[impression]
        for row in full["old"]
        if row[status] == "unclicked" and row[impression_time] + reach < watermark
    }
    orphans = {row[click] for row in emitted if row[status] == "orphan_click"}
    orphans |= {
        row[click] for row in full["old"] if row[status] == "orphan_click" and row[click_time] + early < watermark
    }
    clicked = {row[click] for row in emitted if row[status] == "clicked"}
    met = {row[impression] for row in emitted if row[status] == "clicked"}
    wanted = {
        "full_outer": ("clicked", "unclicked", "orphan_click"),
        "left_outer": ("clicked", "unclicked"),
        "right_outer": ("clicked", "orphan_click"),
        "inner": ("clicked",),
    }[new.attribute.join.value]
    due = []
    for row in full["new"]:
        if row[status] == "clicked" and (row[click] in clicked | orphans):
            continue
        if row[status] == "clicked" and row[impression] in gone:
            # Its impression was decided before the click could count.
            due += [one for one in _single(source, old, click, row[click]) if one[status] in wanted]
            continue
        if row[status] == "unclicked" and row[impression] in gone | met:
            continue
        if row[status] == "orphan_click" and row[click] in clicked | orphans:
            continue
        if row[status] in wanted:
            due.append(row)
    # Nor has an impression a click that was an orphan before.
    met |= {row[impression] for row in due if row[status] != "orphan_click"}
    left = {row[impression] for row in full["new"] if row[status] == "clicked" and row[click] in orphans} - met - gone
    unclicked = (row for key in left for row in _single(source, old, impression, key) if row[status] == "unclicked")
    due += [row for row in unclicked if row[status] in wanted]
    assert met | gone
    return [*emitted, *due]


def _single(source: Path, old: Settings, column: int, key: str) -> list[Row]:
    """The rows with ``key`` in ``column`` if no click has an impression."""
    narrow = {"window": timedelta(milliseconds=1), "tolerance": timedelta(), "join": JoinType.FULL_OUTER}
    never = old.model_copy(update={"attribute": old.attribute.model_copy(update=narrow)})
    return [row for row in _oracle(source, never, ATTRIBUTIONS) if row[column] == key]


_SESSIONIZE: dict[str, tuple[_Changes, _Changes]] = {
    "longer gap": ({}, {"sessionize": {"gap": "20min"}}),
    "shorter gap": ({}, {"sessionize": {"gap": "1min"}}),
    "cut at hours": ({}, {"sessionize": {"longest": "1h"}}),
    "no longer cut": ({"sessionize": {"longest": "10min"}}, {"sessionize": {"gap": "20min"}}),
    "longer watermark": ({"sessionize": {"watermark": "140min"}}, {"sessionize": {"watermark": "170min"}}),
    "state store": ({}, {"spark": {"state_store": "memory"}}),
}


@pytest.mark.parametrize(("before", "after"), _cases(_SESSIONIZE))
def test_sessionize(
    before: _Changes, after: _Changes, spark: SparkSession, silver_lake: tuple[Lake, Path], tmp_path: Path
) -> None:
    patient: _Changes = {"sessionize": {"watermark": "170min"}}
    old, new = (
        _settings({**one, "sessionize": patient["sessionize"] | one.get("sessionize", {})}) for one in (before, after)
    )
    half = _half_way(spark, silver_lake, tmp_path, old, SESSIONIZE)
    emitted = comparable(read_table(half.lake, SESSIONS), SESSIONS)
    watermark = _watermark(half.lake, SESSIONIZE)
    assert reset(OpenLake.of(half.lake, new, spark), SESSIONIZE).open_events
    _to_the_end(spark, half, new)
    found = comparable(read_table(half.lake, SESSIONS), SESSIONS)
    start, end, events = (compared_columns(SESSIONS).index(name) for name in ("session_start", "session_end", "events"))
    assert not Counter(emitted) - Counter(found), "what was emitted stays"
    visits = [row for row in _oracle(half.source, new, SILVER_EVENTS) if row[0] in VISIT_TYPES]
    assert sum(len(row[events]) for row in found) == len(visits), "each event of a visit once"
    assert len({event[1:] for row in found for event in row[events]}) == len(visits)
    gap = max(old.sessionize.gap, new.sessionize.gap)
    before_it = [row for row in _oracle(half.source, old, SESSIONS) if row[end] + gap < watermark]
    after_it = [row for row in _oracle(half.source, new, SESSIONS) if row[start] > watermark + timedelta(hours=2)]
    assert before_it
    assert after_it
    assert not Counter(map(_hashable, [*before_it, *after_it])) - Counter(map(_hashable, found))


def _hashable(row: Row) -> Row:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


_AVERAGE: dict[str, tuple[_Changes, _Changes]] = {
    "another key": ({}, {"moving_average": {"key": "user_id", "size": 2}}),
    "another key and longer watermark": (
        {"moving_average": {"watermark": "170min"}},
        {"moving_average": {"key": "ad_id", "size": 3}},
    ),
    "more values": ({}, {"moving_average": {"size": 20}}),
    "partitions": ({}, {"spark": {"shuffle_partitions": 3}}),
}


@pytest.mark.parametrize(("before", "after"), _cases(_AVERAGE, quick=0))
def test_moving_average(
    before: _Changes, after: _Changes, spark: SparkSession, silver_lake: tuple[Lake, Path], tmp_path: Path
) -> None:
    old, new = _settings(before), _settings(after)
    half = _half_way(spark, silver_lake, tmp_path, old, MOVING_AVERAGE)
    watermark = _watermark(half.lake, MOVING_AVERAGE)
    assert read_table(half.lake, MOVING_AVERAGES)
    reset(OpenLake.of(half.lake, new, spark), MOVING_AVERAGE)
    _to_the_end(spark, half, new)
    last, end = (compared_columns(MOVING_AVERAGES).index(name) for name in ("is_last", "window_end"))
    timeout = old.moving_average.timeout
    ends = {
        name: {row[end] for row in _oracle(half.source, one, MOVING_AVERAGES)} for name, one in (("o", old), ("n", new))
    }
    assert ends["o"]

    def is_decided(row: Row) -> bool:
        return bool(row[end] + timeout <= watermark if row[last] else row[end] <= watermark)

    expected = _decided(
        _oracle(half.source, old, MOVING_AVERAGES), _oracle(half.source, new, MOVING_AVERAGES), is_decided
    )
    assert_same_rows(read_table(half.lake, MOVING_AVERAGES), expected, MOVING_AVERAGES)


_CLOCKS = {
    "event to processing": ("event", "processing"),
    "processing to event": ("processing", "event"),
    "processing": ("processing", "processing"),
}


@pytest.mark.parametrize(("before", "after"), _cases(_CLOCKS, quick=0))
def test_a_mean_comes_once_for_each_value_whatever_the_clock(
    before: str, after: str, spark: SparkSession, silver_lake: tuple[Lake, Path], tmp_path: Path
) -> None:
    old, new = (
        _settings({"moving_average": {"output": "every", "clock": clock, "timeout": "20h"}})
        for clock in (before, after)
    )
    half = _half_way(spark, silver_lake, tmp_path, old, MOVING_AVERAGE)
    reset(OpenLake.of(half.lake, new, spark), MOVING_AVERAGE)
    _to_the_end(spark, half, new)
    last, key = (compared_columns(MOVING_AVERAGES).index(name) for name in ("is_last", "key"))
    found = Counter(
        row[key] for row in comparable(read_table(half.lake, MOVING_AVERAGES), MOVING_AVERAGES) if not row[last]
    )
    silver = _oracle(half.source, new, SILVER_EVENTS)
    kind, campaign = (compared_columns(SILVER_EVENTS).index(name) for name in ("event_type", "campaign_id"))
    assert found == Counter(row[campaign] for row in silver if row[kind] == "impression")


@pytest.mark.parametrize(("before", "after"), _cases(_CLOCKS, quick=0))
def test_a_user_comes_online_once_whatever_the_clock(
    before: str, after: str, spark: SparkSession, silver_lake: tuple[Lake, Path], tmp_path: Path
) -> None:
    old, new = (_settings({"user_status": {"clock": clock, "idle_after": "30h"}}) for clock in (before, after))
    half = _half_way(spark, silver_lake, tmp_path, old, USER_STATUS_QUERY)
    reset(OpenLake.of(half.lake, new, spark), USER_STATUS_QUERY)
    _to_the_end(spark, half, new)
    user, status = (compared_columns(USER_STATUS).index(name) for name in ("user_id", "status"))
    found = Counter((row[user], row[status]) for row in comparable(read_table(half.lake, USER_STATUS), USER_STATUS))
    silver = _oracle(half.source, new, SILVER_EVENTS)
    events = Counter(row[compared_columns(SILVER_EVENTS).index("user_id")] for row in silver)
    due = {(name, "online"): 1 for name in events} | {
        (name, "active"): 1 for name, count in events.items() if count > 1
    }
    assert {one: count for one, count in found.items() if one[1] != "inactive"} == due


_STATUS: dict[str, tuple[_Changes, _Changes]] = {
    "longer watermark": ({"user_status": {"watermark": "170min"}}, {}),
    "another silence": ({}, {"user_status": {"idle_after": "7min"}}),
}


@pytest.mark.parametrize(("before", "after"), _cases(_STATUS, quick=0))
def test_user_status(
    before: _Changes, after: _Changes, spark: SparkSession, silver_lake: tuple[Lake, Path], tmp_path: Path
) -> None:
    old, new = _settings(before), _settings(after)
    half = _half_way(spark, silver_lake, tmp_path, old, USER_STATUS_QUERY)
    watermark = _watermark(half.lake, USER_STATUS_QUERY)
    reset(OpenLake.of(half.lake, new, spark), USER_STATUS_QUERY)
    _to_the_end(spark, half, new)
    since = compared_columns(USER_STATUS).index("since")
    old_rows, new_rows = (_oracle(half.source, one, USER_STATUS) for one in (old, new))
    if old.user_status.idle_after == new.user_status.idle_after:
        assert old_rows == new_rows
        assert_same_rows(read_table(half.lake, USER_STATUS), new_rows, USER_STATUS)
        return
    found = Counter(comparable(read_table(half.lake, USER_STATUS), USER_STATUS))
    edge = max(old.user_status.idle_after, new.user_status.idle_after)
    assert not Counter(row for row in old_rows if row[since] <= watermark) - found
    assert not Counter(row for row in new_rows if row[since] > watermark + edge) - found


_CASES = {
    DEDUPLICATE: _DEDUPLICATE,
    ATTRIBUTE: _ATTRIBUTE,
    SESSIONIZE: _SESSIONIZE,
    CAMPAIGN_STATS_QUERY: _STATS,
    MOVING_AVERAGE: {**_AVERAGE, "clock": ({}, {"moving_average": {"clock": "processing"}})},
    USER_STATUS_QUERY: {**_STATUS, "clock": ({}, {"user_status": {"clock": "processing"}})},
}
_NO_ALTERNATIVE = {"moving_average.values"}
"""Silver has only one column of numbers."""
_NOT_OF_THE_ROWS = {"spark.shuffle_partitions"}
"""How the state is spread; test_reset.py changes it."""
_IGNORED = {f"{query}.initial_state" for query in (SESSIONIZE, MOVING_AVERAGE, USER_STATUS_QUERY)}
"""A reset keeps the state that the first start read; test_initial_state.py resets with it."""


@pytest.mark.parametrize("query", _CASES)
def test_every_setting_that_the_state_depends_on_has_a_case(query: str) -> None:
    described = find_query(query)
    changed: set[str] = set()
    for before, after in _CASES[query].values():
        old, new = (described.state_settings(_settings(one), FILES) for one in (before, after))
        changed |= {name for name in old if old[name] != new[name]}
    assert {one.name for one in described.state} - changed - _NO_ALTERNATIVE - _NOT_OF_THE_ROWS - _IGNORED == set()
