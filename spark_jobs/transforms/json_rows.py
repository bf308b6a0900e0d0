"""Rows as JSON, to be shown to people or compared by them."""

from pyspark.sql import Column
from pyspark.sql import functions as F

_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def json_row(*columns: str) -> Column:
    """A JSON object of ``columns``, nulls included; times in the session's zone, UTC, to the microsecond with ``Z``.

    Collected by themselves, times would be turned to the zone of the machine and lose their own.
    """
    return F.to_json(F.struct(*columns), {**_TIMES, "ignoreNullFields": "false"})


def from_json_row(text: str, ddl: str) -> Column:
    """A struct of the columns ``ddl`` of a row in the column ``text``, as :func:`json_row` has written it."""
    return F.from_json(text, ddl, _TIMES)
