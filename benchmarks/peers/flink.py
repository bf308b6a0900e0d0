"""PyFlink doing the main job's work in SQL: `python flink.py SOURCE OUT BACKEND CORES`, BACKEND rocksdb or hashmap.

One job: parsed once, deduplicated once, joined and sessionized from there. README.md explains the settings.
"""

import sys
from pathlib import Path

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

_EVENTS = """
CREATE TABLE events (
  event_type STRING, event_id STRING, event_time TIMESTAMP_LTZ(3), user_id STRING,
  campaign_id STRING, ad_id STRING, cost_micros BIGINT, impression_id STRING,
  arrival AS PROCTIME(),
  WATERMARK FOR event_time AS event_time - INTERVAL '10' MINUTE
) WITH (
  'connector' = 'filesystem', 'path' = 'file://{source}', 'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
)
"""
_SILVER = """
CREATE VIEW silver AS
SELECT event_type, event_id, event_time, user_id, campaign_id, ad_id, cost_micros, impression_id FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY event_type, event_id ORDER BY arrival) AS place FROM events
) WHERE place = 1
"""
_ATTRIBUTIONS = """
CREATE TABLE attributions (
  status STRING, impression_id STRING, impression_time TIMESTAMP_LTZ(3), campaign_id STRING, ad_id STRING,
  user_id STRING, cost_micros BIGINT, click_id STRING, click_time TIMESTAMP_LTZ(3)
) WITH ('connector' = 'filesystem', 'path' = 'file://{out}/attributions', 'format' = 'csv')
"""
_SESSIONS = """
CREATE TABLE sessions (
  user_id STRING, session_start TIMESTAMP_LTZ(3), session_end TIMESTAMP_LTZ(3), event_count BIGINT, events ARRAY<STRING>
) WITH ('connector' = 'filesystem', 'path' = 'file://{out}/sessions', 'format' = 'json')
"""
_ATTRIBUTE = """
INSERT INTO attributions
SELECT
  CASE WHEN i.event_id IS NULL THEN 'orphan_click' WHEN c.event_id IS NULL THEN 'unclicked' ELSE 'clicked' END,
  COALESCE(i.event_id, c.impression_id), CAST(i.event_time AS TIMESTAMP_LTZ(3)), i.campaign_id, i.ad_id,
  COALESCE(i.user_id, c.user_id),
  i.cost_micros, c.event_id, CAST(c.event_time AS TIMESTAMP_LTZ(3))
FROM (SELECT * FROM silver WHERE event_type = 'impression') i
FULL OUTER JOIN (SELECT * FROM silver WHERE event_type = 'click') c
  ON c.impression_id = i.event_id AND c.event_time BETWEEN i.event_time AND i.event_time + INTERVAL '1' HOUR
"""
_SESSIONIZE = """
INSERT INTO sessions
SELECT user_id, MIN(event_time), MAX(event_time), COUNT(*), ARRAY_AGG(event_id)
FROM TABLE(SESSION(TABLE silver PARTITION BY user_id, DESCRIPTOR(event_time), INTERVAL '5' MINUTE))
GROUP BY user_id, window_start, window_end
"""


def main(source: Path, out: Path, backend: str, cores: int) -> None:
    """Runs the job to the end of its input."""
    conf = Configuration()
    for name, value in {
        "parallelism.default": str(cores),
        "taskmanager.numberOfTaskSlots": str(cores),
        "taskmanager.memory.managed.size": "2g",
        "taskmanager.memory.network.max": "256m",
        "state.backend.type": backend,
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.dir": f"file://{out}/checkpoints",
        "table.exec.state.ttl": "3 h",
        "table.local-time-zone": "UTC",
        "pipeline.object-reuse": "true",
    }.items():
        conf.set_string(name, value)
    tables = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(conf).build()
    )
    for statement in (_EVENTS, _SILVER, _ATTRIBUTIONS, _SESSIONS):
        tables.execute_sql(statement.format(source=source, out=out))
    both = tables.create_statement_set()
    both.add_insert_sql(_ATTRIBUTE)
    both.add_insert_sql(_SESSIONIZE)
    both.execute().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3], int(sys.argv[4]))
