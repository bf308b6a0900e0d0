"""``gold/sessions``: a late event lengthens a session, joins two, or is one of its own.

::

    gap 5min   12:00    12:04             12:12   12:15
    live       a ─────── b ┤              c ────── d ┤     two sessions
    late                        k 12:08                    one, from a to d: its id is that of the first

The sessions between two silences of a user, or two cuts, before and after, are compared together.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.queries.chains import CHAIN_END, rows_within, touched_chains
from spark_jobs.queries.correction import DUE, GROUP, AffectedRows, Correction, CorrectionInput
from spark_jobs.queries.open_events import is_of_visit
from spark_jobs.queries.sessionize.operator import sessionize
from spark_jobs.spark.columns import interval
from spark_jobs.traffic_rules.kinds.common import EVENT


def recompute(late: DataFrame, scene: CorrectionInput) -> AffectedRows:
    """See :data:`spark_jobs.queries.correction.Recompute`."""
    own = scene.settings.sessionize
    chains, dates = touched_chains(late.where(is_of_visit()), scene, own.gap, own.longest)
    due = F.col(CHAIN_END) + interval(own.gap)
    sessions = sessionize(chains.where("is_counted").drop(GROUP), own)
    expected = rows_within(sessions, chains.withColumn(DUE, due), F.col("session_start"), lambda end: end, scene)
    live = scene.live.where(F.col("event_date").isin(dates))
    return AffectedRows(
        scope=chains.where("is_late").select(*EVENT, GROUP, due.alias(DUE)),
        expected=expected.withColumn(DUE, F.col("session_end")),
        actual=rows_within(live, chains, F.col("session_start"), lambda end: end, scene),
    )


CORRECTION = Correction(recompute=recompute, key=lambda _columns: ("session_id",), time="session_start", counts={})
