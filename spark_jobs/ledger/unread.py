"""How many events of silver each query has not read yet: carried along, so that no update counts them again.

::

    unread now = unread at the last update + new in silver - read since the last update

An update needs only the events that a query has read since, or has open; those that wait for a query that stands still
cost nothing, however many they are.
"""

from collections.abc import Iterable

from spark_jobs.ledger.model import Ledger, Part, QueryPosition
from spark_jobs.ledger.workbench import LedgerDatabase

UNREAD = "unread"
_SCHEMA = "account VARCHAR, kind TINYINT, has_user BOOLEAN, hour BIGINT, rows BIGINT"
_ROWS = 'kind, "user" IS NOT NULL AS has_user, hour_of(event_us) AS hour'


def is_wanted(last: Ledger, query: str, before: QueryPosition, now: QueryPosition, part: Part) -> bool:
    """Whether the query has read some of ``part`` since ``last``, or has some of it open."""
    if not _is_carried(last, query) and part.last > before.silver:
        return True
    is_read = before.silver < part.last and part.first <= now.silver and before != now
    return is_read or (part.first <= now.silver and part.newest_us > now.watermark_ms * 1000)


def count_unread(desk: LedgerDatabase, last: Ledger, moves: Iterable[tuple[str, QueryPosition, QueryPosition]]) -> str:
    """Creates the table ``unread`` from the tables ``kept`` and ``event``.

    Args:
        desk: ``event`` holds all events that a query has read since the last update; of a query that is new to the
            ledger, all that it has not read, too.
        last: the ledger before.
        moves: of each query its name, and its positions then and now.

    Returns:
        The file that holds it.
    """
    desk.load("carried", last.files.get(UNREAD), _SCHEMA)
    desk.run(f"CREATE TABLE unread ({_SCHEMA})")
    for name, before, now in moves:
        if _is_carried(last, name):
            desk.run(f"INSERT INTO unread FROM carried WHERE account = '{name}'")
        else:
            older = f"version > {before.silver} AND version <= {last.silver}"
            desk.run(f"INSERT INTO unread SELECT '{name}', {_ROWS}, count(*) FROM event WHERE {older} GROUP BY ALL")
        desk.run(f"INSERT INTO unread SELECT '{name}', {_ROWS}, count(*) FROM kept GROUP BY ALL")
        read = f"version > {before.silver} AND version <= {now.silver}"
        desk.run(f"INSERT INTO unread SELECT '{name}', {_ROWS}, -count(*) FROM event WHERE {read} GROUP BY ALL")
    sums = (
        "SELECT account, kind, has_user, hour, sum(rows)::BIGINT AS rows FROM unread GROUP BY ALL HAVING sum(rows) <> 0"
    )
    desk.run(f"CREATE OR REPLACE TABLE unread AS {sums}")
    return desk.store(UNREAD, "FROM unread ORDER BY ALL")


def _is_carried(last: Ledger, query: str) -> bool:
    """Whether ``last`` says how many events ``query`` had not read."""
    return UNREAD in last.files and query in last.positions
