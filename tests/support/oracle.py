"""The oracle: every output table of a bounded run, computed by DuckDB from the input files alone.

It is written from the contract and shares no code with the jobs. What differs from run to run (source, ingest time,
a session's id) is left out of the comparison: see ``compared_columns``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from spark_jobs.config.choices import AverageOutput, DeduplicateMode, JoinType
from spark_jobs.config.durations import microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import OK
from spark_jobs.contract.tables import BRONZE_EVENTS, SESSIONS, SILVER_EVENTS, Table
from spark_jobs.ledger.model import Ledger, RecordKind
from spark_jobs.queries.attribute.query import NAME as ATTRIBUTE
from spark_jobs.queries.sessionize.query import NAME as SESSIONIZE
from tests.support.source_files import read_files
from tests.support.verdicts import Event, judge

Row = tuple[Any, ...]

Mark = tuple[str, str, int, str]
"""Type, id and time (microseconds) of a marked event, and id of the rule."""
_MARKS = pa.schema(
    [("event_type", pa.string()), ("event_id", pa.string()), ("us", pa.int64()), ("rule_id", pa.string())]
)
_STATUSES = {
    JoinType.FULL_OUTER: ("clicked", "unclicked", "orphan_click"),
    JoinType.LEFT_OUTER: ("clicked", "unclicked"),
    JoinType.RIGHT_OUTER: ("clicked", "orphan_click"),
    JoinType.INNER: ("clicked",),
}
_NOT_COMPARED = {
    *("source", "ingest_time", "session_id", "source_name"),
    *("reason", "received_time", "received_meta", "requeued_from"),
}
_SHOWN = 10

_SILVER = """
CREATE TABLE silver AS
SELECT * REPLACE (make_timestamp(event_time) AS event_time), CAST(make_timestamp(event_time) AS DATE) AS event_date
FROM arrivals
QUALIFY row_number() OVER (PARTITION BY event_type, event_id ORDER BY arrival) = 1
"""

_ATTRIBUTIONS = """
WITH named AS (SELECT event_type, event_id, us, list(rule_id) AS rules FROM marks GROUP BY ALL)
SELECT
  CASE
    WHEN i.event_id IS NULL THEN 'orphan_click'
    WHEN c.event_id IS NULL THEN 'unclicked'
    ELSE 'clicked'
  END AS status,
  coalesce(i.event_id, c.impression_id) AS impression_id,
  i.event_time AS impression_time,
  i.campaign_id,
  i.ad_id,
  coalesce(i.user_id, c.user_id) AS user_id,
  i.cost_micros,
  c.event_id AS click_id,
  c.event_time AS click_time,
  CAST(floor((epoch_us(c.event_time) - epoch_us(i.event_time)) / 1000) AS BIGINT) AS click_delay_ms,
  coalesce(i.event_date, c.event_date) AS event_date,
  CASE WHEN mi.rules IS NOT NULL OR mc.rules IS NOT NULL THEN
    list_sort(list_distinct(list_concat(coalesce(mi.rules, []), coalesce(mc.rules, [])))) END AS invalid,
  CASE WHEN mi.rules IS NOT NULL THEN true END AS invalid_impression
FROM (FROM silver WHERE event_type = 'impression') i
FULL OUTER JOIN (FROM silver WHERE event_type = 'click') c
  ON c.impression_id = i.event_id
  AND epoch_us(c.event_time) BETWEEN epoch_us(i.event_time) - $early AND epoch_us(i.event_time) + $window
LEFT JOIN named mi ON mi.event_type = 'impression' AND mi.event_id = i.event_id AND mi.us = epoch_us(i.event_time)
LEFT JOIN named mc ON mc.event_type = 'click' AND mc.event_id = c.event_id AND mc.us = epoch_us(c.event_time)
"""

_SESSIONS = """
WITH neighbours AS (
  SELECT *, lag(event_time) OVER in_order AS previous_time, lag(is_last) OVER in_order AS after_last
  FROM silver WHERE event_type <> 'conversion' AND user_id IS NOT NULL
  WINDOW in_order AS (PARTITION BY user_id ORDER BY event_time, event_id, event_type)
),
starts AS (
  SELECT *, after_last OR epoch_us(event_time) - epoch_us(previous_time) > $gap
    OR $longest > 0 AND epoch_us(previous_time) < epoch_us(event_time) - epoch_us(event_time) % $longest
    AS starts_session
  FROM neighbours
),
numbered AS (
  SELECT *, count(*) FILTER (starts_session) OVER in_order AS session_number
  FROM starts
  WINDOW in_order AS (PARTITION BY user_id ORDER BY event_time, event_id, event_type ROWS UNBOUNDED PRECEDING)
)
SELECT
  user_id,
  min(event_time) AS session_start,
  max(event_time) AS session_end,
  CASE WHEN last(is_last ORDER BY event_time, event_id, event_type) THEN 'is_last' ELSE 'timeout' END AS ended_by,
  count(*) AS event_count,
  count(*) FILTER (event_type = 'impression') AS impression_count,
  count(*) FILTER (event_type = 'click') AS click_count,
  count(*) FILTER (event_type = 'activity') AS activity_count,
  list(row(event_time, event_type, event_id) ORDER BY event_time, event_id, event_type) AS events,
  CAST(min(event_time) AS DATE) AS event_date
FROM numbered
GROUP BY user_id, session_number
"""


# A sliding window that begins k slides before an event holds it as long as k slides are shorter than the window.
_CAMPAIGN_STATS = """
WITH counted AS (
  SELECT epoch_us(event_time) AS us, campaign_id, 1 AS impression, 0 AS click, cost_micros AS cost,
    NOT (event_type, event_id, epoch_us(event_time)) IN (SELECT (event_type, event_id, us) FROM marks) AS is_valid
  FROM silver WHERE event_type = 'impression'
  UNION ALL
  SELECT epoch_us(c.event_time), i.campaign_id, 0, 1, NULL,
    NOT ('impression', i.event_id, epoch_us(i.event_time)) IN (SELECT (event_type, event_id, us) FROM marks)
    AND NOT ('click', c.event_id, epoch_us(c.event_time)) IN (SELECT (event_type, event_id, us) FROM marks)
  FROM (FROM silver WHERE event_type = 'click') c
  JOIN (FROM silver WHERE event_type = 'impression') i
    ON c.impression_id = i.event_id
    AND epoch_us(c.event_time) BETWEEN epoch_us(i.event_time) - $early AND epoch_us(i.event_time) + $reach
),
placed AS (
  SELECT *, us - us % $slide - k * $slide AS start_us
  FROM counted, range(CAST(ceil($window / $slide) AS BIGINT)) AS slides(k)
  WHERE us - (us - us % $slide - k * $slide) < $window
)
SELECT
  make_timestamp(start_us) AS window_start,
  make_timestamp(start_us + $window) AS window_end,
  campaign_id,
  CAST(sum(impression) AS BIGINT) AS impressions,
  CAST(sum(click) AS BIGINT) AS clicks,
  CASE WHEN sum(impression) = 0 THEN 0 ELSE CAST(sum(cost) AS BIGINT) END AS cost_micros,
  CASE WHEN sum(impression) > 0 THEN sum(click) / sum(impression) END AS ctr,
  CAST(coalesce(sum(impression) FILTER (is_valid), 0) AS BIGINT) AS valid_impressions,
  CAST(coalesce(sum(click) FILTER (is_valid), 0) AS BIGINT) AS valid_clicks,
  CASE
    WHEN coalesce(sum(impression) FILTER (is_valid), 0) = 0 THEN 0 ELSE CAST(sum(cost) FILTER (is_valid) AS BIGINT)
  END AS valid_cost_micros
FROM placed
GROUP BY start_us, campaign_id
"""

_MOVING_AVERAGES = """
WITH readings AS (
  UNPIVOT (SELECT {key} AS key, epoch_us(event_time) AS us, {values} FROM silver WHERE {key} IS NOT NULL)
  ON {values} INTO NAME measure VALUE value
),
numbered AS (
  -- Equal readings have no order of their own; without one of them for all windows below, each could take another.
  SELECT *, row_number() OVER (PARTITION BY key, measure ORDER BY us, value) AS number FROM readings
),
neighbours AS (
  SELECT *, us - lag(us) OVER in_order AS silence, lead(us) OVER in_order - us AS next_silence
  FROM numbered
  WINDOW in_order AS (PARTITION BY key, measure ORDER BY number)
),
runs AS (
  SELECT *, count(*) FILTER (silence > $timeout) OVER in_order AS run
  FROM neighbours
  WINDOW in_order AS (PARTITION BY key, measure ORDER BY number ROWS UNBOUNDED PRECEDING)
),
means AS (
  SELECT key, measure, min(us) OVER last_ones AS first_us, us, count(*) OVER last_ones AS value_count,
    avg(CAST(value AS DOUBLE)) OVER last_ones AS mean, coalesce(next_silence > $timeout, true) AS is_end
  FROM runs
  WINDOW last_ones AS (
    PARTITION BY key, measure, run ORDER BY number ROWS BETWEEN $before PRECEDING AND CURRENT ROW
  )
)
SELECT
  key, measure, make_timestamp(first_us), make_timestamp(us), value_count,
  CASE WHEN is_last OR value_count > $before THEN mean ELSE 0 END, is_last
FROM means, (VALUES (false), (true)) AS twice(is_last)
WHERE CASE WHEN is_last THEN is_end ELSE value_count > $before OR $every END
"""

_USER_STATUS = """
WITH neighbours AS (
  SELECT user_id, epoch_us(event_time) AS us,
    epoch_us(event_time) - lag(epoch_us(event_time)) OVER in_order AS silence,
    lead(epoch_us(event_time)) OVER in_order - epoch_us(event_time) AS next_silence
  FROM silver WHERE event_type <> 'conversion' AND user_id IS NOT NULL
  WINDOW in_order AS (PARTITION BY user_id ORDER BY event_time, event_id, event_type)
),
visits AS (
  SELECT *, coalesce(silence > $idle, true) AS is_first, coalesce(next_silence > $idle, true) AS is_end
  FROM neighbours
),
placed AS (
  SELECT *, coalesce(lag(is_first) OVER in_order, false) AND NOT is_first AS is_second
  FROM visits
  WINDOW in_order AS (PARTITION BY user_id ORDER BY us, is_first DESC, is_end)
)
SELECT user_id, 'online', make_timestamp(us) FROM placed WHERE is_first
UNION ALL
SELECT user_id, 'active', make_timestamp(us) FROM placed WHERE is_second
UNION ALL
SELECT user_id, 'inactive', make_timestamp(us + $idle) FROM placed WHERE is_end
"""


class Accounts(NamedTuple):
    """How many records came in, and what became of them."""

    received: int
    quarantined: dict[str, int]
    ok: int
    kept: int
    duplicates: int
    late: int


@dataclass(frozen=True)
class Expected:
    """What a drained run must leave behind: sorted rows of the compared columns, and the accounts."""

    bronze: list[Row]
    silver: list[Row]
    attributions: list[Row]
    sessions: list[Row]
    campaign_stats: list[Row]
    moving_averages: list[Row]
    user_status: list[Row]
    ledger: Accounts

    def rows(self, table: Table) -> list[Row]:
        """The rows expected in ``table``."""
        rows: list[Row] = getattr(self, table.name)
        return rows


def expected_tables(
    source: Path,
    settings: Settings,
    receipt: datetime,
    *,
    batches: Sequence[Sequence[bytes]] | None = None,
    marks: Iterable[Mark] = (),
) -> Expected:
    """The tables of a drained run over the folder ``source``, received at ``receipt`` (a datetime with a zone).

    With ``marks`` that hold, gold is as it is when all of them were brought to it.

    With ``batches``, the same records batch by batch, rows that come too late for deduplication are found as well;
    without, nothing is late. Rows that are late only for the join or for their session are beyond the oracle.
    """
    if batches is None:
        batches = [[record for records in read_files(source) for record in records]]
    elif settings.deduplicate.mode is not DeduplicateMode.WITHIN_WATERMARK:
        raise ValueError(f"deduplicate.mode {settings.deduplicate.mode}: the contract does not say what is late there")
    judged = [[judge(record, receipt=receipt, ingest=settings.ingest) for record in batch] for batch in batches]
    everyone = [record for batch in judged for record in batch]
    in_time = _in_time([[record.event for record in batch if record.event] for batch in judged], settings)
    with duckdb.connect() as connection:
        connection.register("arrivals", _arrow(in_time))
        connection.execute(_SILVER)
        named = [dict(zip(_MARKS.names, mark, strict=True)) for mark in marks]
        connection.register("marks", pa.Table.from_pylist(named, _MARKS))
        silver = connection.execute(f"SELECT {', '.join(compared_columns(SILVER_EVENTS))} FROM silver").fetchall()
        pairs = {"window": settings.attribute.window, "early": settings.attribute.tolerance}
        attributions = connection.execute(
            _ATTRIBUTIONS, {name: microseconds(length) for name, length in pairs.items()}
        ).fetchall()
        sessions = connection.execute(
            _SESSIONS, {name: microseconds(getattr(settings.sessionize, name)) for name in ("gap", "longest")}
        ).fetchall()
        measured = [_in_order(rows) for rows in _measured(connection, settings)]
    no_fields = (None,) * len(Event._fields)
    expected = Expected(
        bronze=_in_order((record.raw, record.verdict, *(record.event or no_fields)) for record in everyone),
        silver=_in_order(silver),
        attributions=_in_order(row for row in attributions if row[0] in _STATUSES[settings.attribute.join]),
        sessions=_in_order(sessions),
        campaign_stats=measured[0],
        moving_averages=measured[1],
        user_status=measured[2],
        ledger=Accounts(0, {}, 0, 0, 0, 0),
    )
    return replace(expected, ledger=_ledger(expected))


def _measured(connection: duckdb.DuckDBPyConnection, settings: Settings) -> Iterator[list[Row]]:
    stats, average = settings.campaign_stats, settings.moving_average
    sizes = {"window": microseconds(stats.window), "slide": microseconds(stats.slide)}
    reach, early = microseconds(settings.attribute.window), microseconds(settings.attribute.tolerance)
    yield connection.execute(_CAMPAIGN_STATS, {**sizes, "reach": reach, "early": early}).fetchall()
    means = _MOVING_AVERAGES.format(key=average.key, values=", ".join(average.values))
    every = average.output is AverageOutput.EVERY
    parameters = {"timeout": microseconds(average.timeout), "every": every}
    # A frame takes no parameter.
    yield connection.execute(means.replace("$before", str(average.size - 1)), parameters).fetchall()
    yield connection.execute(_USER_STATUS, {"idle": microseconds(settings.user_status.idle_after)}).fetchall()


def compared_columns(table: Table) -> tuple[str, ...]:
    """The columns of ``table`` that the contract settles to the last bit, in order."""
    return tuple(name for name in table.column_names if name not in _NOT_COMPARED)


def comparable(rows: Iterable[Row], table: Table) -> list[Row]:
    """``rows`` of all columns of ``table``, cut down to the compared ones and sorted."""
    compared = [index for index, name in enumerate(table.column_names) if name not in _NOT_COMPARED]
    cut = [tuple(row[index] for index in compared) for row in rows]
    if table == BRONZE_EVENTS:
        # Which fields of a bad record are kept is nobody's promise.
        cut = [row if row[1] == OK else (*row[:2], *[None] * (len(row) - 2)) for row in cut]
        cut = [(row[0].removeprefix("\ufeff").removeprefix("\u00ef\u00bb\u00bf"), *row[1:]) for row in cut]
    return _in_order(cut)


def assert_same_rows(actual: Iterable[Row], expected: Sequence[Row], table: Table) -> None:
    """Fail with the first differences unless ``actual``, rows of all columns of ``table``, says what ``expected`` does.

    Rows are compared as a multiset; the ids of sessions must be there and be unique.
    """
    actual = list(actual)
    if table == SESSIONS:
        ids = Counter(row[0] for row in actual)
        repeated = [session_id for session_id, count in ids.items() if count > 1 or not session_id]
        assert not repeated, f"{table.name}: session_id null, empty or repeated: {repeated[:_SHOWN]}"
    there, due = Counter(comparable(actual, table)), Counter(map(_frozen, expected))
    missing, extra = _in_order((due - there).elements()), _in_order((there - due).elements())
    differences = [
        f"{table.name}: {due.total()} rows expected, {there.total()} found; columns {compared_columns(table)}",
        f"{len(missing)} missing:",
        *(f"  - {row}" for row in missing[:_SHOWN]),
        f"{len(extra)} extra:",
        *(f"  + {row}" for row in extra[:_SHOWN]),
    ]
    assert there == due, "\n".join(differences)


def assert_same_accounts(actual: Ledger, expected: Accounts, *, gold: bool = True) -> None:
    """Fail unless a cut counts what is expected, and balances; with ``gold`` also unless gold has every event."""
    said = (actual.received, actual.quarantined, actual.ok, actual.kept, actual.duplicates + actual.late)
    due = (expected.received, expected.quarantined, expected.ok, expected.kept, expected.duplicates + expected.late)
    assert said == due
    # Of a late copy nobody knows what it is once its event is forgotten, until a repair looks.
    assert actual.late >= expected.late
    assert actual.wrong == []
    lacking = {
        name: rows
        for name in (ATTRIBUTE, SESSIONIZE)
        if (rows := actual.rows(RecordKind.PENDING, RecordKind.LATE, account=name))
    }
    assert not gold or lacking == {}, f"gold lacks events: {lacking}"


def _in_time(batches: Sequence[Sequence[Event]], settings: Settings) -> list[Event]:
    """The events of ``batches`` that are not late: Spark judges a batch by the watermark of the batch before it."""
    kept: list[Event] = []
    newest: list[datetime | None] = []
    for number, batch in enumerate(batches):
        seen = newest[number - 2] if number >= 2 else None
        watermark = seen and seen - settings.deduplicate.watermark
        kept += [event for event in batch if watermark is None or event.event_time > watermark]
        times = [_to_millisecond(event.event_time) for event in batch] + [time for time in newest[-1:] if time]
        newest.append(max(times, default=None))
    return kept


def _to_millisecond(time: datetime) -> datetime:
    return time - timedelta(microseconds=time.microsecond % 1000)


def _arrow(events: Sequence[Event]) -> pa.Table:
    """``events`` as a table in order of ``arrival``, times in microseconds since the epoch."""
    types = {**dict.fromkeys(("event_time", "cost_micros", "value_micros"), pa.int64()), "is_last": pa.bool_()}
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001 naive means UTC throughout
    columns = dict(zip(Event._fields, zip(*events, strict=True) if events else [()] * len(Event._fields), strict=True))
    columns["event_time"] = tuple((time - epoch) // timedelta(microseconds=1) for time in columns["event_time"])
    arrays = {name: pa.array(values, types.get(name, pa.string())) for name, values in columns.items()}
    return pa.table({**arrays, "arrival": pa.array(range(len(events)), pa.int64())})


def _ledger(expected: Expected) -> Accounts:
    verdicts = Counter(row[1] for row in expected.bronze)
    ok = verdicts.pop(OK, 0)
    # A copy of a kept event is a duplicate, however late it came.
    kept_keys = set(_keys(expected.silver, SILVER_EVENTS))
    good = [row for row in expected.bronze if row[1] == OK]
    late = sum(key not in kept_keys for key in _keys(good, BRONZE_EVENTS))
    return Accounts(
        received=len(expected.bronze),
        quarantined=dict(sorted(verdicts.items())),
        ok=ok,
        kept=len(expected.silver),
        duplicates=ok - len(expected.silver) - late,
        late=late,
    )


def _keys(rows: Sequence[Row], table: Table) -> list[tuple[str, str]]:
    event_type, event_id = (compared_columns(table).index(name) for name in ("event_type", "event_id"))
    return [(row[event_type], row[event_id]) for row in rows]


def _frozen(row: Row) -> Row:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


def _in_order(rows: Iterable[Row]) -> list[Row]:
    """``rows`` with their arrays as tuples, sorted, nulls first."""
    return sorted(map(_frozen, rows), key=lambda row: [(value is not None, value) for value in row])
