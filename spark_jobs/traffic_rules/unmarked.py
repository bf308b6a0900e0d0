"""Conversions and attributions without marked events: the input of net credit.

::

    attributions     i1, click k1     i2, click k2     i3
    marked               k1               i2
    left             i1, seen                          i3
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.contract.events import CLICK, IMPRESSION
from spark_jobs.traffic_rules.kinds.common import EVENT

_ID, _TIME = "marked_id", "marked_time"
_CLICK = ("click_id", "click_time")


def unmarked_events(events: DataFrame, marked: DataFrame) -> DataFrame:
    """The ``events`` that are not ``marked``: see :func:`spark_jobs.traffic_rules.evaluate.marked_events`."""
    return events.join(marked, on=list(EVENT), how="left_anti")


def unmarked_attributions(rows: DataFrame, marked: DataFrame) -> DataFrame:
    """The ``rows`` of attributions without ``marked`` events.

    All rows of a marked impression are removed, with its clicks. A row with a marked click keeps the impression, with
    null for the click; ``status`` stays as it was.
    """
    shown = rows.join(_of(marked, IMPRESSION), on=_is("impression_id", "impression_time"), how="left_anti")
    clicks = _of(marked, CLICK)
    columns = [
        F.when(F.col(_ID).isNull(), F.col(name)).alias(name) if name in _CLICK else F.col(name) for name in rows.columns
    ]
    return shown.join(clicks, on=_is(*_CLICK), how="left").select(*columns)


def _of(marked: DataFrame, event_type: str) -> DataFrame:
    """The marked events of a type, under names that attributions do not have."""
    names = F.col("event_id").alias(_ID), F.col("event_time").alias(_TIME)
    return marked.where(F.col("event_type") == event_type).select(*names)


def _is(event_id: str, time: str) -> list[Column]:
    return [F.col(event_id) == F.col(_ID), F.col(time) == F.col(_TIME)]
