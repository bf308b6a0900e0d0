"""Ids that came with different contents."""

import re
from pathlib import Path

import duckdb

from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.sql.views.conflicting_ids import VIEW

_PAGE = Path(__file__).parents[2] / "docs" / "query-gold.md"
_BY_SOURCE = re.findall(r"`(SELECT [^`]* FROM conflicting_ids [^`]*)`", _PAGE.read_text())[0]
_TYPES = {"STRING": "VARCHAR"}


def test_copies_are_left_out_and_events_that_share_an_id_are_shown_with_what_differs() -> None:
    columns = {column.name: _TYPES.get(column.sql_type, column.sql_type) for column in BRONZE_EVENTS.columns}
    with duckdb.connect() as sql:
        sql.execute("CREATE TABLE bronze (" + ", ".join(f"{name} {kind}" for name, kind in columns.items()) + ")")

        def put(event_id: str, hour: int, verdict: str = "ok", **fields: object) -> None:
            row = {
                "event_type": "click",
                "event_id": event_id,
                "event_time": f"2026-03-01 {hour:02}:00:00",
                "verdict": verdict,
                "source_name": "web",
                "user_id": "u-1",
                "impression_id": "i-1",
                **fields,
            }
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            sql.execute(f"INSERT INTO bronze ({names}) VALUES ({marks})", list(row.values()))

        for _ in range(2):
            put("copy", 12, raw="one")
        put("copy", 12, raw="the same event in another form")
        put("k-1", 12)
        put("k-1", 13, user_id="u-2", impression_id="i-2")
        put("991", 12)
        put("991", 12, source_name="app", impression_id=None)
        put("broken", 12)
        put("broken", 12, verdict="invalid_user_id", user_id="u-2")
        found = sql.execute(f"SELECT event_id, sources, records, differing FROM ({VIEW.sql})").fetchall()
        sql.execute(f"CREATE VIEW conflicting_ids AS {VIEW.sql}")
        by_source = dict(sql.execute(_BY_SOURCE).fetchall())
    assert by_source == {"app": 1, "web": 2}
    assert found == [
        ("991", ["app", "web"], 2, ["impression_id"]),
        ("k-1", ["web"], 2, ["event_time", "user_id", "impression_id"]),
    ]
