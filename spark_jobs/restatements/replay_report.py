"""The report of a replay on one table: how many rows differ, by cause, their worth, and the first of them."""

import json
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.config.durations import Window
from spark_jobs.contract.tables import RESTATEMENTS, SUMS
from spark_jobs.queries.correction import GROUP
from spark_jobs.restatements.compare import COPIES, restatement_rows
from spark_jobs.restatements.plan import Cause, ChangeOutcome
from spark_jobs.restatements.replay_compare import Compared
from spark_jobs.restatements.replay_model import CampaignDifference, ReplayedTable
from spark_jobs.spark.columns import between, exact_sum
from spark_jobs.spark.open_lake import OpenLake

_RECORDED = ("table_name", "row_key", "before", "after")
_IS_LATE, _IS_ON_RECORD = "is_late", "is_on_record"


@dataclass(frozen=True)
class Differing:
    """A row that differs: whether a late event explains it, and the actual and the expected row, as JSON."""

    is_late: bool
    change: str
    outcome: str
    row_key: str
    before: str | None
    after: str | None

    @property
    def columns(self) -> list[str]:
        """The columns that differ, if both sides have the row."""
        if self.before is None or self.after is None:
            return []
        before, after = json.loads(self.before), json.loads(self.after)
        return [name for name in after if after[name] != before.get(name)]

    @property
    def outcome_word(self) -> str:
        """The kind of difference."""
        what = {"insert": "missing", "delete": "should not be there", "update": "changed"}[self.change]
        return f"{what}, frozen" if self.outcome == ChangeOutcome.FROZEN.value else what


@dataclass(frozen=True)
class Judged:
    """The report on a table, and the changes that are not on record as frozen already."""

    table: ReplayedTable
    first: list[Differing]
    new: DataFrame


def judge(lake: OpenLake, window: Window, compared: Compared, shown: int) -> Judged:
    """The report on ``compared``, with the first ``shown`` rows that differ."""
    one, changed = compared.one, compared.changed
    correction, name = one.correction, one.query.writes.name
    rows = restatement_rows(
        changed, correction.key(compared.columns), compared.columns, correction.time, correction.counts
    )
    rows = rows.withColumn("table_name", F.lit(name)).localCheckpoint()
    rows = _marked(lake, rows).localCheckpoint()
    within = rows.where(_is_in("row_time", window))
    late, unknown = _counts(within)
    table = ReplayedTable(
        version=one.version,
        watermark_ms=one.note.watermark_ms,
        same=compared.actual - _deleted(compared, window),
        late=late,
        open=compared.still_open,
        unknown=unknown,
        campaigns=_campaigns(within) if "campaign_id" in correction.counts else {},
    )
    on_record = rows.groupBy(GROUP).agg(F.min(_IS_ON_RECORD).alias(_IS_ON_RECORD)).where(_IS_ON_RECORD).select(GROUP)
    return Judged(table, _first(within, shown), changed.join(on_record, on=GROUP, how="left_anti"))


def _marked(lake: OpenLake, rows: DataFrame) -> DataFrame:
    """``rows`` with ``is_late``: a late event explains the row; ``is_on_record``: it is on record as frozen."""
    explained = F.col("cause") != Cause.REPLAY.value
    if not lake.has(RESTATEMENTS):
        return rows.withColumns({_IS_LATE: explained, _IS_ON_RECORD: F.lit(False)})
    on_record = between(lake.read(RESTATEMENTS), "row_time", rows, "row_time", "row_time")
    frozen = on_record.where(F.col("outcome") == ChangeOutcome.FROZEN.value)
    by_late_event = F.max(explained).alias("by_late_event")
    record = frozen.groupBy(*[F.col(name).alias(f"told_{name}") for name in _RECORDED]).agg(by_late_event)
    is_same = F.lit(True)
    for name in _RECORDED:
        is_same &= F.col(name).eqNullSafe(F.col(f"told_{name}"))
    is_on_record = F.col("by_late_event").isNotNull() & (F.col("outcome") == ChangeOutcome.FROZEN.value)
    return rows.join(record, on=is_same, how="left").withColumns(
        {_IS_LATE: explained | (is_on_record & F.col("by_late_event")), _IS_ON_RECORD: is_on_record}
    )


def _is_in(time: str, window: Window) -> Column:
    return (F.col(time) >= F.lit(window.begin)) & (F.col(time) < F.lit(window.end))


def _counts(rows: DataFrame) -> tuple[int, int]:
    ((late, unknown),) = rows.agg(F.count_if(_IS_LATE), F.count_if(~F.col(_IS_LATE))).collect()
    return late, unknown


def _deleted(compared: Compared, window: Window) -> int:
    """How many rows of the window are to be deleted."""
    deleted = compared.changed.where(F.col(COPIES) < 0)
    placed = deleted.select(COPIES, "row.*").withColumn("row_time", F.expr(compared.one.correction.time))
    ((count,),) = placed.where(_is_in("row_time", window)).agg(F.sum(-F.col(COPIES))).collect()
    return int(count or 0)


def _campaigns(rows: DataFrame) -> dict[str, CampaignDifference]:
    summed = rows.groupBy("campaign_id").agg(*[exact_sum(name).alias(name) for name in SUMS]).collect()
    found = {row["campaign_id"] or "": [int(row[name] or 0) for name in SUMS] for row in summed}
    return {
        campaign: CampaignDifference(**dict(zip(SUMS, counts, strict=True)))
        for campaign, counts in sorted(found.items())
        if any(counts)
    }


def _first(rows: DataFrame, shown: int) -> list[Differing]:
    chosen = rows.orderBy(_IS_LATE, "row_time", "row_key").limit(shown)
    return [
        Differing(*row) for row in chosen.select(_IS_LATE, "change", "outcome", "row_key", "before", "after").collect()
    ]
