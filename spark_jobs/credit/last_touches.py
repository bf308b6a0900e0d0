"""The last clicks and views before a conversion, for ids that many people share: ``credit.most_touches``.

A conversion is compared with all touches of its user, so an id with very many of both would make a run very long. Of a
*crowded* one, only the last clicks and the last views before a conversion can be touches of it::

    most_touches 2

    clicks           1     2     3        4      numbered by time
    conversions                     p         q
    last clicks                   2, 3      3, 4

No other user has that many, so they need no numbers.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from spark_jobs.credit.orders import BASIS_TIME, BASIS_USER

TOUCHED_USER = "touched_user"
"""Column: the user of a row of attributions."""
_AT, _ID, _IS_TOUCH, _SO_FAR = "at", "touch_id", "is_touch", "so_far"
_PLACE, _GROUP, _WANTED_GROUP = "place", "of_places", "of_wanted_places"


def crowded_users(conversions: DataFrame, shown: DataFrame, most: int) -> DataFrame:
    """The users of ``conversions`` that have more than ``most`` rows in ``shown``.

    Args:
        conversions: rows with ``basis_user``, few enough to be sent to every task.
        shown: rows of attributions with ``touched_user``.
        most: ``credit.most_touches``.

    Returns:
        ``touched_user``, each once.
    """
    users = conversions.select(F.col(BASIS_USER).alias(TOUCHED_USER)).where(F.col(TOUCHED_USER).isNotNull()).distinct()
    counted = shown.join(users, on=TOUCHED_USER, how="left_semi").groupBy(TOUCHED_USER).count()
    return counted.where(F.col("count") > most).select(TOUCHED_USER)


def with_last(conversions: DataFrame, shown: DataFrame, time: Column, event_id: Column, most: int) -> DataFrame:
    """Each of ``conversions`` with the last ``most`` rows of ``shown`` up to it.

    Args:
        conversions: rows with ``basis_user`` and ``basis_time``.
        shown: rows with ``touched_user``.
        time: of a row of ``shown``; where it is null the row is no touch.
        event_id: of a row of ``shown``; of two at one time, the greater comes later.
        most: how many.

    Returns:
        The columns of both; a conversion without any row is missing.
    """
    touches = shown.withColumns({_AT: time, _ID: event_id}).where(F.col(_AT).isNotNull())
    both = touches.withColumns({BASIS_USER: F.col(TOUCHED_USER), _IS_TOUCH: F.lit(True)}).unionByName(
        conversions.withColumns({_AT: F.col(BASIS_TIME), _IS_TOUCH: F.lit(False)}), allowMissingColumns=True
    )
    # A touch at the instant of the conversion is one of those up to it.
    in_time = Over.partitionBy(BASIS_USER).orderBy(_AT, F.desc(_IS_TOUCH), _ID)
    so_far = F.count(F.when(F.col(_IS_TOUCH), 1)).over(in_time.rowsBetween(Over.unboundedPreceding, 0))
    numbered = both.withColumn(_SO_FAR, so_far).localCheckpoint()
    # In groups of `most` numbers, the last ones lie in the group of the conversion and in the one before.
    group = F.floor(F.col(_SO_FAR) / most)
    numbers = {_PLACE: F.col(_SO_FAR), _GROUP: group}
    found = numbered.where(_IS_TOUCH).withColumns(numbers).select(*shown.columns, *numbers)
    groups = F.explode(F.array(group - 1, group)).alias(_WANTED_GROUP)
    wanted = numbered.where(~F.col(_IS_TOUCH)).select(*conversions.columns, _SO_FAR, groups)
    is_last = (F.col(_PLACE) > F.col(_SO_FAR) - most) & (F.col(_PLACE) <= F.col(_SO_FAR))
    in_group = (F.col(BASIS_USER) == F.col(TOUCHED_USER)) & (F.col(_GROUP) == F.col(_WANTED_GROUP))
    return wanted.join(found, on=in_group & is_last).select(*conversions.columns, *shown.columns)
