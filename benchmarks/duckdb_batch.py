"""DuckDB doing the main job's work in one batch: `python -m benchmarks.duckdb_batch SOURCE OUT`.

It parses, deduplicates, joins and sessionizes, and writes Parquet. It keeps no bronze, validates nothing and cannot
continue with new data tomorrow: an upper bound for the machine, not a peer.
"""

import sys
from pathlib import Path

import duckdb

_FIELDS = (
    "{event_type: 'VARCHAR', event_id: 'VARCHAR', event_time: 'TIMESTAMPTZ', user_id: 'VARCHAR', is_last: 'BOOLEAN', "
    "campaign_id: 'VARCHAR', ad_id: 'VARCHAR', cost_micros: 'BIGINT', impression_id: 'VARCHAR', data: 'VARCHAR'}"
)
_WORK = f"""
CREATE TABLE silver AS
SELECT * FROM read_json($source, format = 'newline_delimited', columns = {_FIELDS})
QUALIFY row_number() OVER (PARTITION BY event_type, event_id) = 1;

COPY (
    SELECT CASE WHEN i.event_id IS NULL THEN 'orphan_click' WHEN c.event_id IS NULL THEN 'unclicked' ELSE 'clicked' END
               AS status,
           coalesce(i.event_id, c.impression_id) AS impression_id, i.event_time AS impression_time, i.campaign_id,
           i.ad_id, coalesce(i.user_id, c.user_id) AS user_id, i.cost_micros, c.event_id AS click_id,
           c.event_time AS click_time
    FROM (SELECT * FROM silver WHERE event_type = 'impression') i
    FULL JOIN (SELECT * FROM silver WHERE event_type = 'click') c
      ON c.impression_id = i.event_id AND c.event_time BETWEEN i.event_time AND i.event_time + INTERVAL 1 HOUR
) TO $attributions (FORMAT parquet);

COPY (
    WITH marked AS (
        SELECT *, coalesce(
            event_time > lag(event_time) OVER w + INTERVAL 5 MINUTE OR lag(coalesce(is_last, false)) OVER w, true
        ) AS begins
        FROM silver WINDOW w AS (PARTITION BY user_id ORDER BY event_time, event_id, event_type)
    ), numbered AS (
        SELECT *, sum(begins::INT) OVER w AS number
        FROM marked WINDOW w AS (PARTITION BY user_id ORDER BY event_time, event_id, event_type)
    )
    SELECT user_id, min(event_time) AS session_start, max(event_time) AS session_end, count(*) AS event_count,
           list({{time: event_time, type: event_type, id: event_id}} ORDER BY event_time, event_id, event_type)
               AS events
    FROM numbered GROUP BY user_id, number
) TO $sessions (FORMAT parquet);
"""


def main(source: Path, out: Path) -> None:
    """Does the work, and prints the row counts of attributions by status and of sessions."""
    out.mkdir(parents=True, exist_ok=True)
    attributions, sessions = str(out / "attributions.parquet"), str(out / "sessions.parquet")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in _WORK.split(";\n"):
            if statement.strip():
                values = {"source": str(source / "*.jsonl"), "attributions": attributions, "sessions": sessions}
                used = {name: value for name, value in values.items() if f"${name}" in statement}
                connection.execute(statement, used)
        by_status = "SELECT status, count(*) FROM read_parquet($file) GROUP BY status ORDER BY status"
        for status, count in connection.execute(by_status, {"file": attributions}).fetchall():
            print(status, count)
        (count,) = connection.execute("SELECT count(*) FROM read_parquet($file)", {"file": sessions}).fetchone() or (0,)
        print("sessions", count)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
