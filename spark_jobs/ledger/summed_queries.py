"""The accounts of the job ``measure``: what its queries have read, what was late for them, what is open.

Their rows do not name events. ``campaign_stats`` is proved by sums: of a window that is final, as many impressions were
emitted as were read, less at most those that lay behind the watermark. With ``campaign_stats.output = update`` the
table's rows change, and nothing is proved.
"""

from collections.abc import Sequence

from spark_jobs.config.choices import StatsOutput
from spark_jobs.config.durations import ROUNDING, microseconds
from spark_jobs.config.settings import Settings
from spark_jobs.contract.events import EVENT_TYPES, IMPRESSION
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.log import Commit
from spark_jobs.ledger.model import QueryPosition, RecordKind
from spark_jobs.ledger.read_files import NUMBER, TIME, Batch, Files, read_files
from spark_jobs.ledger.workbench import LedgerDatabase
from spark_jobs.queries.campaign_stats import query as campaign_stats
from spark_jobs.queries.query import Query

WINDOWS_SCHEMA = "start_us BIGINT, read BIGINT, behind BIGINT, emitted BIGINT"
_ROUNDING_US = microseconds(ROUNDING)


def take_measured(
    desk: LedgerDatabase,
    query: Query,
    settings: Settings,
    batches: Sequence[Batch],
    before: QueryPosition,
    now: QueryPosition,
) -> None:
    """Counts what ``query`` has read between two positions, and what is open; ``event`` has the events for that."""
    lines, first, line = [], before.silver + 1, before.watermark_ms
    for batch in batches:
        # Spark drops what lies at or before the watermark of the batch before.
        lines += [(version, line * 1000, batch.watermark_ms * 1000) for version in range(first, batch.reached + 1)]
        first, line = max(first, batch.reached + 1), batch.watermark_ms
    desk.run(
        "CREATE OR REPLACE TABLE lines AS SELECT unnest($versions) AS version, unnest($late) AS late_us, "
        "unnest($behind) AS behind_us",
        versions=[version for version, _, _ in lines],
        late=[late_us for _, late_us, _ in lines],
        behind=[behind_us for _, _, behind_us in lines],
    )
    desk.run(
        "CREATE OR REPLACE TABLE fresh AS SELECT e.event_us, e.kind, event_us <= late_us AS is_late, "
        "event_us <= behind_us AS is_behind FROM event e JOIN lines USING (version)"
    )
    desk.count(query.name, RecordKind.READ, "FROM fresh", source="NULL")
    desk.count(query.name, RecordKind.LATE, "FROM fresh WHERE is_late", source="NULL")
    is_open = f"event_us > {now.watermark_ms * 1000}" if query.watermark(settings) is not None else "false"
    desk.run(
        f"INSERT INTO state SELECT '{query.name}', '{RecordKind.PENDING.value}', NULL, hour, NULL, sum(rows) FROM ("
        f"SELECT hour, rows FROM unread WHERE account = '{query.name}' UNION ALL SELECT hour_of(event_us), 1 "
        f"FROM event WHERE version <= {now.silver} AND {is_open}) GROUP BY ALL"
    )


def prove_windows(
    desk: LedgerDatabase,
    lake: Lake,
    settings: Settings,
    found: Sequence[Commit],
    now: QueryPosition,
    since_us: int | None,
) -> None:
    """Holds the impressions in final windows against those read, right after :func:`take_measured`."""
    own = settings.campaign_stats
    if own.output is not StatsOutput.APPEND:
        return
    window, slide = microseconds(own.window), microseconds(own.slide)
    code = EVENT_TYPES.index(IMPRESSION)
    desk.run(
        f"""
        INSERT INTO windows
        SELECT event_us - event_us % {slide} - k * {slide} AS start_us, count(*), count(*) FILTER (is_behind), 0
        FROM fresh, range({-(-window // slide)}) AS slides(k)
        WHERE kind = {code} AND event_us % {slide} + k * {slide} < {window} GROUP BY ALL
        """
    )
    files: Files = [(file, {}) for change in found if change.is_of(campaign_stats.NAME) for file in change.added]
    with desk.seeing(written=read_files(lake, files, {"window_start": TIME, "impressions": NUMBER}, {})):
        desk.run("INSERT INTO windows SELECT epoch_us(window_start), 0, 0, sum(impressions) FROM written GROUP BY ALL")
    desk.run(
        "CREATE OR REPLACE TABLE summed AS SELECT start_us, sum(read)::BIGINT AS read, sum(behind)::BIGINT AS "
        "behind, sum(emitted)::BIGINT AS emitted FROM windows GROUP BY start_us"
    )
    reach = microseconds(settings.attribute.window)
    final_us = now.watermark_ms * 1000 - reach - _ROUNDING_US
    desk.run("DELETE FROM windows")
    # A final window that adds up is settled; what comes for it later is behind, and adds up by itself.
    desk.run(
        f"INSERT INTO windows FROM summed WHERE start_us + {window} > {final_us} "
        "OR emitted > read OR emitted < read - behind"
    )
    if since_us is not None:
        desk.run(f"DELETE FROM windows WHERE start_us <= {since_us}")
    excess = {RecordKind.UNACCOUNTED: "read - behind - emitted", RecordKind.SURPLUS: "emitted - read"}
    for kind, rows in excess.items():
        desk.run(
            f"INSERT INTO state SELECT '{campaign_stats.NAME}', '{kind.value}', NULL, hour_of(start_us), NULL, "
            f"sum({rows}) FROM windows WHERE start_us + {window} <= {final_us} AND {rows} > 0 GROUP BY ALL"
        )
