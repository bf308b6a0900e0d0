"""A query's metrics over the last day, for charts: ``_progress/<job>/<query>.trend.json``."""

from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from spark_jobs.contracts.progress import QueryReport

EACH = timedelta(seconds=15)
"""The least distance between the most recent points."""
_FINE = timedelta(hours=1)
_COARSE, _KEPT = timedelta(minutes=5), timedelta(days=1)


class TrendPoint(BaseModel):
    """A query's metrics at one time (UTC). Rates are in rows per second; ``late_rows`` counts since the start."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    input_rows_per_s: float
    processed_rows_per_s: float
    batch_s: float
    watermark_lag_s: float | None
    state_rows: int | None
    late_rows: int


class Trend(BaseModel):
    """A query's points in time order: :data:`EACH` apart in the last hour, five minutes apart in the last day."""

    model_config = ConfigDict(frozen=True)

    points: tuple[TrendPoint, ...] = ()

    def is_due(self, now: datetime) -> bool:
        """Whether a point at ``now`` would be far enough from the last one."""
        return not self.points or now - self.points[-1].at >= EACH

    def after(self, report: QueryReport) -> "Trend":
        """The trend with a point added from ``report``, and older points thinned out."""
        now = report.updated_at
        point = TrendPoint(
            at=now,
            input_rows_per_s=round(report.input_rows_per_s, 1),
            processed_rows_per_s=round(report.processed_rows_per_s, 1),
            batch_s=report.batch_ms / 1000,
            watermark_lag_s=None if report.watermark_lag_s is None else round(report.watermark_lag_s, 1),
            state_rows=report.state_rows,
            late_rows=report.late_rows,
        )
        kept: list[TrendPoint] = []
        for old in self.points:
            age = now - old.at
            is_far = not kept or old.at - kept[-1].at >= _COARSE
            if age <= _FINE or (age <= _KEPT and is_far):
                kept.append(old)
        return Trend(points=(*kept, point))
