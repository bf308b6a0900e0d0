"""All events that count, late ones included: what gold is recomputed from."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.events import HEARTBEAT
from spark_jobs.queries.identity import dates_around, not_replaced


def events_of(
    silver: DataFrame, late: DataFrame | None, initial: DataFrame | None, delay: timedelta | None
) -> Callable[[Sequence[date]], DataFrame]:
    """Returns a function from dates to their events, each once.

    Args:
        silver: the rows of silver.
        late: the events of ``silver/late_events`` that have not expired; None: no event. Of a copy in silver and one
            here, this one counts, because it was received first.
        initial: events that the query began with, with ``event_date``; None: no event.
        delay: how far apart two copies may lie: see :func:`spark_jobs.queries.identity.delay_of`.

    Returns:
        A function from values of ``event_date`` to events with the columns of silver.
    """

    def of_dates(dates: Sequence[date]) -> DataFrame:
        on_date = F.col("event_date").isin(list(dates))
        events = silver.where(on_date & (F.col("event_type") != HEARTBEAT))
        if late is not None:
            near = late if delay is None else late.where(F.col("event_date").isin(dates_around(dates, delay)))
            events = not_replaced(events, near, delay).unionByName(
                _like(late.where(on_date), silver), allowMissingColumns=True
            )
        if initial is not None:
            events = events.unionByName(_like(initial.where(on_date), silver), allowMissingColumns=True)
        return events.select(*silver.columns)

    return of_dates


def span_of(*events: DataFrame | None) -> tuple[date, date] | None:
    """The first and the last ``event_date`` of ``events``; None: no events."""
    found: list[date] = []
    for rows in events:
        if rows is not None:
            first, last = rows.agg(F.min("event_date"), F.max("event_date")).collect()[0]
            found += [] if first is None else [first, last]
    return (min(found), max(found)) if found else None


def _like(rows: DataFrame, silver: DataFrame) -> DataFrame:
    return rows.select(*[name for name in silver.columns if name in rows.columns])
