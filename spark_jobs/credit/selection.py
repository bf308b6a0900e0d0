"""The conversions that a run of credit computes, and why.

A conversion is computed when it becomes due, and again when

- it came late; then a copy that had counted is selected too: its rows are deleted,
- a repair or a replay has changed an attribution that can be a touch of it,
- for net credit, also when a mark of it or of a possible touch was set or revoked,
- it is of the order of one of these, or a refund of a conversion of such an order, and so may count differently.
"""

from datetime import UTC, date, datetime
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import Window
from spark_jobs.contract.events import CLICK, CONVERSION, IMPRESSION
from spark_jobs.contract.tables import ATTRIBUTIONS, RESTATEMENTS, SILVER_EVENTS
from spark_jobs.credit.due_conversions import LATE_TIME, DueConversions, ends_of, group_of
from spark_jobs.credit.orders import ORDER, order_of
from spark_jobs.credit.plan import CreditHorizon
from spark_jobs.places import REPAIR
from spark_jobs.queries.arrivals import rows_between
from spark_jobs.queries.correction import GROUP
from spark_jobs.restatements.late_events import CAUSE
from spark_jobs.restatements.plan import Cause, ChangeOutcome
from spark_jobs.spark.columns import MOST_ROWS, dates_of, dates_within, few, from_json_row, interval
from spark_jobs.spark.open_lake import OpenLake
from spark_jobs.traffic_rules.kinds.common import EVENT

WHY: Final = "why"
"""Column: why a conversion is computed again, a struct of :data:`REASON`; null: it is computed for the first time."""
REASON: Final = ("received_at", "cause", "event_type", "event_id", "repair")
"""About the event behind it: when it was received, why it changes the conversion, its key, and the number of the
repair that applied it; 0: none."""
_WHY_TYPE = "struct<received_at: timestamp, cause: string, event_type: string, event_id: string, repair: bigint>"
_TOUCH = "user_id STRING, impression_time TIMESTAMP, click_time TIMESTAMP"
WANTED: Final = (GROUP, "event_id", "event_time")
"""Columns of a selected row: a conversion, and the group in which its rows are compared: its own, or that of the late
copy that replaces it."""
_FOUND: Final = (*WANTED, WHY, ORDER, "revokes")
"""Columns of a conversion whose order is still to be looked through."""


class ConversionsToCompute:
    """The conversions of a lake up to a reach, and which of them are to be computed.

    Selected rows have the columns :data:`WANTED` and ``why``.

    Args:
        lake: the lake.
        reach: how far the tables have come.
        last: the reach of the last run; None: this is the first.
    """

    def __init__(self, lake: OpenLake, reach: CreditHorizon, last: CreditHorizon | None) -> None:
        self._lake, self._reach, self._last = lake, reach, last
        self._due = DueConversions(lake, reach)
        self.counted = self._due.counted
        """Returns those that are due on some dates."""

    def was_due(self, time: str) -> Column:
        """Whether a conversion was due in the last run; ``time`` is the column with its time."""
        return F.lit(False) if self._last is None else F.col(time) <= F.lit(self._last.until)

    def waiting(self) -> int:
        """How many conversions are not due yet."""
        until = self._reach.until
        rows = self._lake.read(SILVER_EVENTS, version=self._reach.silver_version)
        is_later = (F.col("event_date") >= F.lit(_date(until))) & (F.col("event_time") > F.lit(until))
        return rows.where((F.col("event_type") == CONVERSION) & is_later).count()

    def of_window(self, window: Window) -> DataFrame:
        """All conversions in ``window`` that were due, to compute them again."""
        is_in = (F.col("event_time") >= F.lit(window.begin)) & (F.col("event_time") < F.lit(window.end))
        reason = why(F.lit(Cause.REPLAY.value))
        found = _wanted(self._between(window.begin, window.end).where(is_in & self.was_due("event_time")), reason)
        late = self._due.late(_date(window.begin), _date(window.end))
        both = F.explode(F.array("event_time", LATE_TIME)).alias("event_time")
        copies = self._due.replaced(late).where(self.was_due("event_time")).select(GROUP, "event_id", both, reason)
        return first_reasons(found.unionByName(copies))

    def new(self) -> DataFrame:
        """The conversions to compute since the last run."""
        never = F.lit(None).cast(_WHY_TYPE).alias(WHY)
        if self._last is None:
            return _wanted(self.counted(), never)
        since = self.counted(_date(self._last.until)).where(~self.was_due("event_time"))
        return _wanted(since, never).unionByName(self._again(self._last))

    def changed_by(self, events: DataFrame) -> DataFrame:
        """The conversions to compute again because ``events`` no longer count, or count again.

        Args:
            events: ``event_type``, ``event_id``, ``event_time``, ``event_date`` and ``why``.
        """
        return self._with_orders([self._among(events), *self._reached(self._touches_of(events))])

    def _between(self, first: datetime, last: datetime) -> DataFrame:
        """Conversions on the dates from ``first`` to ``last``, and perhaps more at its ends."""
        return self.counted(_date(first), _date(last))

    def _again(self, last: CreditHorizon) -> DataFrame:
        """Conversions that were due and have changed: each once, with the reason received first."""
        return self._with_orders([self._late(last), *self._touched(last)])

    def _with_orders(self, found: list[DataFrame]) -> DataFrame:
        """The ``found`` conversions, those of their orders, and refunds of any: each once, with the first reason."""
        changed = reduce(DataFrame.unionByName, found).localCheckpoint()
        if not (ends := ends_of(changed, "event_time")):
            return first_reasons(changed)
        both = changed.select(*WANTED, WHY).unionByName(self._of_orders(changed, *ends)).localCheckpoint()
        return first_reasons(both.unionByName(self._refunds_of(both)))

    def _late(self, last: CreditHorizon) -> DataFrame:
        """Conversions that came late since the last run, and copies that they replace."""
        why_late = why(F.col(CAUSE), F.col("ingest_time"), F.col("event_type"), F.col("event_id"), F.col(REPAIR))
        was_due = self.was_due("event_time")
        # One that was applied before it was due has replaced nothing yet.
        brought_in = self._due.late().where((F.col(REPAIR) > last.repair) | ~was_due).select("*", group_of(), why_late)
        copies = self._due.replaced(brought_in, WHY)
        found = [self._found(rows.where(was_due)) for rows in (brought_in, copies)]
        first, newest = last.silver_version + 1, self._reach.silver_version
        if first <= newest:
            cause = {CAUSE: F.lit(Cause.LATE_CONVERSION.value), REPAIR: F.lit(0).cast("bigint")}
            added = rows_between(self._lake, SILVER_EVENTS, first, newest)
            more = added.where((F.col("event_type") == CONVERSION) & was_due).withColumns(cause)
            found.append(self._found(more.select("*", group_of(), why_late)))
        return reduce(DataFrame.unionByName, found)

    def _among(self, events: DataFrame) -> DataFrame:
        """The conversions among ``events``."""
        conversions = events.where(F.col("event_type") == CONVERSION)
        dates = dates_of(conversions)
        near = self.counted(dates[0], dates[-1]) if dates else self.counted()
        due = near.where(F.col("event_date").isin(dates) & self.was_due("event_time"))
        found = due.join(conversions.select(*EVENT, WHY), on=list(EVENT), how="inner")
        return self._found(found.withColumn(GROUP, group_of()))

    def _found(self, conversions: DataFrame) -> DataFrame:
        """``conversions``, which have ``group`` and ``why``, with the columns :data:`_FOUND`."""
        return conversions.withColumn(ORDER, order_of(conversions, self._lake.settings.credit)).select(*_FOUND)

    def _of_orders(self, changed: DataFrame, first: datetime, last: datetime) -> DataFrame:
        """The purchases of the orders of ``changed`` conversions, which lie between ``first`` and ``last``.

        A purchase may make a later one of its order a repeat, or cease to do so. Refunds share what is left of a
        purchase, so a refund belongs to the orders of all purchases with the id that it revokes; an id that is used
        again takes refunds away from the one before.
        """
        own = self._lake.settings.credit
        # A repeat looks back for the purchase that counts by the first; the second decides whether that one counts.
        after = last + own.conversion_lookback + own.repeat_within
        purchases = self._between(first - own.conversion_lookback, after)
        purchases = purchases.where(F.col("revokes").isNull() & self.was_due("event_time"))
        purchases = purchases.withColumn(ORDER, order_of(purchases, own))
        named = changed.groupBy(F.coalesce("revokes", "event_id").alias("event_id")).agg(F.min(WHY).alias(WHY))
        of_named = purchases.join(few(named.localCheckpoint(), MOST_ROWS), on="event_id", how="inner")
        of_changed = changed.where(F.col("revokes").isNull()).select(ORDER, WHY)
        orders = of_named.select(ORDER, WHY).unionByName(of_changed).groupBy(ORDER).agg(F.min(WHY).alias(WHY))
        same = purchases.join(few(orders.localCheckpoint(), MOST_ROWS), on=ORDER, how="inner")
        return _wanted(same, F.col(WHY))

    def _touched(self, last: CreditHorizon) -> list[DataFrame]:
        """Conversions that a changed attribution is a touch of, or was."""
        if not self._lake.has(RESTATEMENTS):
            return []
        restated = self._lake.read(RESTATEMENTS).where(
            (F.col("table_name") == ATTRIBUTIONS.name)
            & (F.col("outcome") == ChangeOutcome.APPLIED.value)
            & (F.col(CAUSE) != Cause.INVALID_TRAFFIC.value)
            & F.col(REPAIR).between(last.repair + 1, self._reach.repair)
        )
        reason = why(*[F.col(name) for name in (CAUSE, "received_at", "event_type", "event_id", REPAIR)])
        rows = restated.select(reason, F.explode(F.array("before", "after")).alias("row")).where("row IS NOT NULL")
        touches = rows.select(WHY, from_json_row("row", _TOUCH).alias("touch")).select(WHY, "touch.*")
        return self._reached(touches)

    def _touches_of(self, events: DataFrame) -> DataFrame:
        """The rows of attributions that have one of ``events``."""
        shown = events.where(F.col("event_type").isin(IMPRESSION, CLICK))
        # The date of a row is that of its impression: a click may be on the next one, or on the one before.
        dates = dates_within(shown, self._lake.settings.attribute.window)
        rows = self._lake.read(ATTRIBUTIONS, version=self._reach.attributions_version)
        near = rows.where(F.col("event_date").isin(dates))
        found = []
        for event_type in (IMPRESSION, CLICK):
            names = [f"{event_type}_id", f"{event_type}_time"]
            own = F.col("event_id").alias(names[0]), F.col("event_time").alias(names[1])
            of_type = shown.where(F.col("event_type") == event_type).select(*own, WHY)
            joined = near.join(of_type, on=names, how="inner")
            found.append(joined.select(WHY, "user_id", "impression_time", "click_time"))
        return found[0].unionByName(found[1])

    def _reached(self, touches: DataFrame) -> list[DataFrame]:
        """Conversions that come soon enough after a click or an impression of ``touches`` to have it as a touch.

        Args:
            touches: ``why``, ``user_id``, ``impression_time`` and ``click_time``.
        """
        times = F.explode(F.array("impression_time", "click_time")).alias("touch_time")
        touches = touches.select(WHY, "user_id", times).where(F.col("touch_time").isNotNull()).localCheckpoint()
        if not (ends := ends_of(touches, "touch_time")):
            return []
        lookback = self._lake.settings.credit.click_lookback
        near = self._between(ends[0], ends[1] + lookback).where(self.was_due("event_time"))
        reached = near.join(few(touches, MOST_ROWS), on="user_id", how="inner")
        is_reached = (F.col("event_time") >= F.col("touch_time")) & (
            F.col("event_time") <= F.col("touch_time") + interval(lookback)
        )
        return [self._found(reached.where(is_reached).withColumn(GROUP, group_of()))]

    def _refunds_of(self, changed: DataFrame) -> DataFrame:
        """Refunds of ``changed`` conversions that were due too."""
        if not (ends := ends_of(changed, "event_time")):
            return changed.limit(0)
        since = self._between(ends[0], ends[1] + self._lake.settings.credit.conversion_lookback)
        refunds = since.where(F.col("revokes").isNotNull() & self.was_due("event_time"))
        revoked = changed.groupBy(F.col("event_id").alias("revokes")).agg(F.min(WHY).alias(WHY)).localCheckpoint()
        return _wanted(refunds.join(few(revoked, MOST_ROWS), on="revokes"), F.col(WHY))


def _wanted(events: DataFrame, reason: Column) -> DataFrame:
    return events.select(group_of(), "event_id", "event_time", reason)


def first_reasons(wanted: DataFrame) -> DataFrame:
    """Each ``wanted`` conversion once, with the reason received first."""
    return wanted.groupBy(*WANTED).agg(F.min(WHY).alias(WHY))


def why(cause: Column, *event: Column) -> Column:
    """A reason: ``cause``, and of its event the time of receipt, type, id and the repair, if one applied it."""
    received, kind, event_id, *repair = event or (F.lit(None), F.lit(None), F.lit(None))
    repair = repair or [F.lit(0)]
    values = dict(zip(REASON, (received, cause, kind, event_id, *repair), strict=True))
    return F.struct(*[value.alias(name) for name, value in values.items()]).cast(_WHY_TYPE).alias(WHY)


def _date(time: datetime) -> date:
    return time.astimezone(UTC).date()
