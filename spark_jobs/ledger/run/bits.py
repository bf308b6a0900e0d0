"""What the rows of a lake say of an event, as bits, and how that adds up to its ledger. SQL of DuckDB."""

from collections.abc import Mapping

_MARKS = (
    "received",
    "late",
    "kept",
    "joinable",
    "join_late",
    "session_late",
    "attributed",
    "sessioned",
    "initial",
    "userless",
    "sessionless",
    "late_found",
    "late_expired",
)
"""What a row says of its event, one bit each."""
_TOTALS = """
SELECT
    sum(kept) AS kept,
    sum(CASE WHEN kept > 0 THEN greatest(received - kept, 0) END) AS duplicates,
    sum(CASE WHEN kept = 0 THEN late END) AS late,
    sum(CASE WHEN kept = 0 THEN received - late END) AS unaccounted,
    -- A repair brings late events to gold, and to gold alone.
    sum(greatest(kept - received, 0) + greatest(-lost - late_found, 0)
        + (kept = 0 AND attributed > 0 AND late_found = 0)::BIGINT) AS surplus,
    sum(CASE WHEN joinable > 0 AND attributed = 0 AND join_late > 0 THEN kept END) AS attribution_late,
    sum(CASE WHEN joinable > 0 AND attributed = 0 AND join_late = 0 THEN kept END) AS attribution_open,
    sum(CASE WHEN lost > 0 AND session_late > 0 THEN lost END) AS session_late,
    sum(CASE WHEN lost > 0 AND session_late = 0 THEN lost END) AS session_open,
    sum(initial) AS session_initial,
    sum(userless) AS session_userless,
    sum(sessionless) AS conversions,
    sum(late_found) AS late_found,
    sum(late_expired) AS late_expired
FROM (SELECT *, kept + initial - userless - sessionless - sessioned AS lost FROM ({keys}))
"""


def bits(*marks: str) -> int:
    """The number whose bits are ``marks``."""
    return sum(1 << _MARKS.index(mark) for mark in marks)


def if_late(delays_us: Mapping[str, int]) -> str:
    """The marks of a row (``event_us``) that lies so far behind the newest event before its batch (``before_us``)."""
    return " + ".join(
        f"CASE WHEN event_us <= before_us - {delay_us} THEN {bits(mark)} ELSE 0 END"
        for mark, delay_us in delays_us.items()
    )


def totals_of(marked: str) -> str:
    """The sums of the ledger, as one row, over the query ``marked`` of ``key`` and ``marks``.

    They are defined by :class:`spark_jobs.ledger.run.ledger.Ledger`; one that nothing adds to may be null.
    """
    counts = (f"count(*) FILTER (marks & {bits(mark)} <> 0) AS {mark}" for mark in _MARKS)
    return _TOTALS.format(keys=f"SELECT {', '.join(counts)} FROM ({marked}) GROUP BY key")
