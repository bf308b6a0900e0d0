"""Applies planned changes to one table."""

import logging

from delta.exceptions import ConcurrentDeleteDeleteException, ConcurrentDeleteReadException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contract.tables import Table
from spark_jobs.errors import LakeError
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.notes import CommitNote
from spark_jobs.queries.kept_columns import with_columns
from spark_jobs.restatements.compare import rows_of
from spark_jobs.spark.rewrite_rows import Rewrite, rewrite_rows

_ATTEMPTS = 5
_log = logging.getLogger(__name__)


def change_rows(spark: SparkSession, lake: Lake, table: Table, changed: DataFrame, note: CommitNote) -> None:
    """Deletes and inserts rows of ``table``, in one commit that carries ``note``.

    Args:
        spark: the session.
        lake: where the table lies.
        table: an existing table.
        changed: from :func:`spark_jobs.restatements.compare.changes`.
        note: the writer and the number of the change. The caller has checked that the table does not have it yet.

    Raises:
        RowsChangedError: a row to delete is missing. Nothing was changed.
        LakeError: others rewrote its files in each attempt, or this Delta lacks the internals that it needs.
    """
    change = _rows(spark, lake, table, changed)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            rewrite_rows(lake, table, change, note)
        except (ConcurrentDeleteDeleteException, ConcurrentDeleteReadException) as error:
            _log.warning("%s: others rewrote its files, attempt %d: %s", table.path, attempt, error)
        else:
            return
    raise LakeError(
        f"files of {table.path} in {lake.root} were rewritten during each of {_ATTEMPTS} attempts to change rows of "
        "it; is it being compacted? Run the same command again: it resumes its plan"
    )


def _rows(spark: SparkSession, lake: Lake, table: Table, changed: DataFrame) -> Rewrite:
    types = dict(spark.read.format("delta").load(lake.table(table)).dtypes)
    there, columns = list(types), changed.select("row.*").columns
    assert set(columns) <= set(there), (columns, there)  # noqa: S101 the plan was made from this table
    # An earlier version may have planned it with fewer columns.
    deletes, inserts = (
        with_columns(rows_of(changed, inserted=inserted), types).persist() for inserted in (False, True)
    )
    (name,) = table.partition_by or table.stats_columns[:1]
    if table.partition_by:
        near = F.col(name).isin([row[0] for row in deletes.select(name).distinct().collect()])
    else:
        first, last = deletes.agg(F.unix_micros(F.min(name)), F.unix_micros(F.max(name))).collect()[0]
        ends = (F.timestamp_micros(F.lit(end)) for end in (first, last))
        near = F.lit(False) if first is None else F.col(name).between(*ends)
    return Rewrite(deletes.select(*there), inserts.select(*there), near)
