"""A small lake in which every expectation holds, as plain rows for tests to spoil."""

import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contract.tables import (
    ATTRIBUTIONS,
    BRONZE_EVENTS,
    CAMPAIGN_STATS,
    CREDITS,
    LEFT_OUT,
    MOVING_AVERAGES,
    NET_CREDITS,
    NET_PATHS,
    PATHS,
    SESSIONS,
    SILVER_EVENTS,
    USER_STATUS,
    Table,
)
from spark_jobs.ingest.requeue_model import REJECTIONS
from spark_jobs.lake.layout import Lake
from spark_jobs.ledger.model import RECORDS, Figure, Ledger, RecordKind, ledger_key
from spark_jobs.queries.registry import SHOWN_TABLES

Row = dict[str, Any]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RECEIVED = NOON + timedelta(hours=1)


def at(minutes: float = 0, **more: float) -> datetime:
    """A time, relative to noon."""
    return NOON + timedelta(minutes=minutes, **more)


def _event(event_type: str, event_id: str, time: datetime, user_id: str, **fields: Any) -> Row:
    return {
        "event_type": event_type,
        "event_id": event_id,
        "event_time": time,
        "user_id": user_id,
        "is_last": False,
        "ingest_time": RECEIVED,
        "event_date": time.date(),
        **fields,
    }


def _impression(event_id: str, time: datetime, user_id: str) -> Row:
    return _event("impression", event_id, time, user_id, campaign_id="spring", ad_id="ad-1", cost_micros=1200)


_IMPRESSIONS = [_impression("i1", at(0), "u1"), _impression("i2", at(1), "u2")]
_CLICKS = [
    _event("click", "c1", at(2), "u1", impression_id="i1", ip="192.0.2.1", user_agent="Mozilla/5.0 (X11)"),
    _event("click", "c2", at(3), "u3", impression_id="never-came"),
]
_ACTIVITIES = [_event("activity", f"a{n:02}", at(n), "u4", data="scroll", is_last=n == 9) for n in range(20)]
_PURCHASE = {"conversion_type": "purchase", "value_micros": 25_000_000, "currency": "EUR", "order_id": "o1"}
_CONVERSIONS = [
    _event("conversion", "p1", at(40), "u1", **_PURCHASE),
    _event("conversion", "p2", at(50), "u1", **_PURCHASE, revokes="p1"),
    _event("conversion", "p3", at(50), "u2", conversion_type="signup", value_micros=0),
]
_EVENTS = [*_IMPRESSIONS, *_CLICKS, *_ACTIVITIES, *_CONVERSIONS]
_HEARTBEAT = {"event_type": "heartbeat", "event_time": at(600), "event_date": at(600).date()}


def _record(event: Row, line: int) -> Row:
    fields = {name: value for name, value in event.items() if name != "event_date"}
    return {"raw": json.dumps(event, default=str), "source": f"events.jsonl:{line}", "verdict": "ok", **fields}


def _attribution(status: str, **fields: Any) -> Row:
    return {"status": status, "event_date": NOON.date(), **fields}


def _window(minutes: float, campaign_id: str, impressions: int, clicks: int, cost_micros: int, **fields: Any) -> Row:
    return {
        "window_start": at(minutes),
        "window_end": at(minutes + 10),
        "campaign_id": campaign_id,
        "impressions": impressions,
        "clicks": clicks,
        "cost_micros": cost_micros,
        "ctr": clicks / impressions if impressions else None,
        **fields,
    }


def _mean(first: float, last: float, count: int, mean: float, *, is_last: bool = False) -> Row:
    return {
        "key": "spring",
        "measure": "cost_micros",
        "window_start": at(first),
        "window_end": at(last),
        "value_count": count,
        "mean": mean,
        "is_last": is_last,
    }


def _session(session_id: str, ended_by: str, events: list[Row]) -> Row:
    types = [event["event_type"] for event in events]
    return {
        "session_id": session_id,
        "user_id": events[0]["user_id"],
        "session_start": events[0]["event_time"],
        "session_end": events[-1]["event_time"],
        "ended_by": ended_by,
        "event_count": len(events),
        "impression_count": types.count("impression"),
        "click_count": types.count("click"),
        "activity_count": types.count("activity"),
        "events": [{name: event[name] for name in ("event_time", "event_type", "event_id")} for event in events],
        "event_date": events[0]["event_time"].date(),
    }


def _touch(position: int, impression_id: str, click_id: str | None, time: datetime) -> Row:
    kind = "click" if click_id else "view"
    ids = {"impression_id": impression_id, "click_id": click_id, "campaign_id": "spring", "ad_id": "ad-1"}
    return {"position": position, "kind": kind, **ids, "touch_time": time}


def _path(conversion: Row, outcome: str, *touches: Row) -> Row:
    names = ("user_id", "conversion_type", "currency", "order_id", "revokes", "event_date")
    return {
        **{name: conversion.get(name) for name in names},
        "conversion_id": conversion["event_id"],
        "conversion_time": conversion["event_time"],
        "value_micros": -conversion["value_micros"] if conversion.get("revokes") else conversion["value_micros"],
        "outcome": outcome,
        "path_length": len(touches),
        "touches": [dict(touch) for touch in touches],
    }


def _left_out(conversion: Row, reason: str, micros: int) -> Row:
    names = ("user_id", "conversion_type", "currency", "order_id", "revokes", "event_date")
    return {
        **{name: conversion.get(name) for name in names},
        "conversion_id": conversion["event_id"],
        "conversion_time": conversion["event_time"],
        "reason": reason,
        "left_out_micros": micros,
        "counted_id": "p1",
        "campaign_id": "spring",
    }


def _credits(path: Row, model: str, *shares: tuple[int, int]) -> list[Row]:
    """A credit for each of ``shares``: micros and parts of a million."""
    touches = path["touches"] or [{"position": 0}]
    of_path = {name: path[name] for name in ("conversion_id", "currency", "conversion_time", "event_date")}
    names = ("position", "campaign_id", "ad_id", "click_id", "impression_id")
    return [
        {
            **of_path,
            **{name: touch.get(name) for name in names},
            "model": model,
            "credit_micros": micros,
            "weight_ppm": ppm,
        }
        for touch, (micros, ppm) in zip(touches, shares, strict=True)
    ]


_BOUGHT, _REFUND, _SIGNUP = _CONVERSIONS
_NEXT_DAY = _SIGNUP["event_time"] + timedelta(days=1)
_OF_U1 = (_touch(1, "i1", "c1", at(2)), _touch(2, "i3", None, at(5)))
_PATHS = [
    _path(_BOUGHT, "click_through", *_OF_U1),
    _path(_REFUND, "click_through", *_OF_U1),
    _path(_SIGNUP, "view_through", _touch(1, "i2", None, at(1))),
    # Its id is used again, by another user.
    _path({**_SIGNUP, "user_id": "u9", "event_time": _NEXT_DAY, "event_date": _NEXT_DAY.date()}, "organic"),
]
_CREDITS = [
    *_credits(_PATHS[0], "linear", (12_500_000, 500_000), (12_500_000, 500_000)),
    *_credits(_PATHS[0], "last_touch", (0, 0), (25_000_000, 1_000_000)),
    *_credits(_PATHS[1], "linear", (-12_500_000, 500_000), (-12_500_000, 500_000)),
    *_credits(_PATHS[2], "linear", (0, 1_000_000)),
    *_credits(_PATHS[3], "linear", (0, 1_000_000)),
]
_LEFT_OUT = [
    _left_out({**_BOUGHT, "event_id": "p1-again"}, "repeat", _BOUGHT["value_micros"]),
    _left_out({**_REFUND, "event_id": "r1-again"}, "more_than_left", -1_000_000),
]
_OF_I1 = {"impression_id": "i1", "impression_time": at(0), "user_id": "u1"}
_OF_I2 = {"impression_id": "i2", "impression_time": at(1), "user_id": "u2"}
_OF_C1 = {"click_id": "c1", "click_time": at(2), "click_delay_ms": 120_000}
_AD = {"campaign_id": "spring", "ad_id": "ad-1", "cost_micros": 1200}
_GOOD: dict[str, list[Row]] = {
    BRONZE_EVENTS.name: [
        *(_record(event, line) for line, event in enumerate([*_EVENTS, _IMPRESSIONS[0]])),
        {"raw": "{", "source": "events.jsonl:99", "ingest_time": RECEIVED, "verdict": "malformed_json"},
    ],
    SILVER_EVENTS.name: [*_EVENTS, _HEARTBEAT],
    ATTRIBUTIONS.name: [
        _attribution("clicked", **_OF_I1, **_AD, **_OF_C1, invalid=["a", "b"], invalid_impression=True),
        _attribution("unclicked", **_OF_I2, **_AD),
        _attribution("orphan_click", impression_id="never-came", user_id="u3", click_id="c2", click_time=at(3)),
    ],
    CAMPAIGN_STATS.name: [
        _window(0, "spring", 2, 1, 2400),
        _window(10, "spring", 0, 1, 0),
        _window(0, "autumn", 1, 0, 0, valid_impressions=0, valid_clicks=0, valid_cost_micros=0),
    ],
    MOVING_AVERAGES.name: [_mean(0, 20, 10, 5.5), _mean(1, 21, 10, 6.5), _mean(1, 21, 10, 6.5, is_last=True)],
    USER_STATUS.name: [
        {"user_id": user_id, "status": status, "since": at(minutes)}
        for user_id, minutes, status in (
            ("u1", 0, "online"),
            ("u1", 0, "active"),
            ("u1", 90, "inactive"),
            ("u1", 200, "online"),
            ("u2", 5, "online"),
            ("u2", 65, "inactive"),
        )
    ],
    SESSIONS.name: [
        _session("s1", "timeout", [_IMPRESSIONS[0], _CLICKS[0]]),
        _session("s2", "timeout", [_IMPRESSIONS[1]]),
        _session("s3", "timeout", [_CLICKS[1]]),
        _session("s4", "is_last", _ACTIVITIES[:10]),
        _session("s5", "timeout", _ACTIVITIES[10:]),
    ],
    PATHS.name: _PATHS,
    CREDITS.name: _CREDITS,
    LEFT_OUT.name: _LEFT_OUT,
    NET_PATHS.name: _PATHS,
    NET_CREDITS.name: _CREDITS,
}
_GOOD_LEDGER: dict[str, int] = {
    "received": 29,
    "malformed_json": 1,
    "ok": 28,
    "kept": 27,
    "duplicate": 1,
}


def good_ledger(**changes: int) -> Ledger:
    """The ledger of the good rows: the rows of each kind, of each verdict and of kinds in queries, with ``changes``."""
    figures = []
    for name, rows in (_GOOD_LEDGER | changes).items():
        account, _, kind = name.rpartition("__")
        if name in REJECTIONS:
            figures.append(Figure(account=RECORDS, kind=RecordKind.QUARANTINED, rows=rows, verdict=name))
        else:
            figures.append(Figure(account=account or RECORDS, kind=RecordKind(kind), rows=rows))
    return Ledger(number=1, taken_at=NOON, figures=tuple(figures))


def good_rows(table: str) -> list[Row]:
    """The rows of ``table``; callers may spoil them."""
    return deepcopy(_GOOD[table])


def frame(spark: SparkSession, table: str, rows: list[Row], owners: list[str] | None = None) -> DataFrame:
    """``rows`` with the columns of ``table`` (null where a row lacks one), and ``owner`` if ``owners`` are given."""
    contract = SHOWN_TABLES[table]
    values = [tuple(row.get(name) for name in contract.column_names) for row in rows]
    if owners is None:
        return spark.createDataFrame(values, contract.ddl).coalesce(1)
    owned = [(*value, owner) for value, owner in zip(values, owners, strict=True)]
    return spark.createDataFrame(owned, f"{contract.ddl}, owner STRING").coalesce(1)


_IDS = (
    *("event_id", "user_id", "impression_id", "click_id", "session_id", "campaign_id", "key", "revokes"),
    "conversion_id",
)


def apart(rows: list[Row], case: int) -> list[Row]:
    """``rows`` with ids unique to the case, so that many cases fit in one table without sharing keys."""
    return [{name: _own(value, case) if name in _IDS else value for name, value in row.items()} for row in rows]


def _own(value: str | None, case: int) -> str | None:
    # Ids that are too short or too long are planted faults: leave them alone.
    return f"{value}.{case}" if value and len(value) < 100 else value


def append(spark: SparkSession, lake: Lake, table: Table, rows: list[Row], *, change_data: bool = True) -> None:
    """Commits ``rows`` to ``table``, created the way the jobs create it if missing."""
    writer = frame(spark, table.name, rows).write.format("delta").mode("append").partitionBy(*table.partition_by)
    if change_data:
        writer = writer.option("delta.enableChangeDataFeed", "true")
    writer.save(lake.table(table))


def write_ledger(lake: Lake) -> None:
    """Writes the ledger of the good rows."""
    lake.files.write(ledger_key(1), good_ledger().model_dump_json().encode())
