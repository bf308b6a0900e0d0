"""Rows as JSON, to be shown to people or compared by them."""

from pyspark.sql import Column
from pyspark.sql import functions as F

_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


def json_row(*columns: str) -> Column:
    """A JSON object of ``columns``, nulls included; times in the session's zone, UTC, to the microsecond with ``Z``.

    Collected by themselves, times would be turned to the zone of the machine and lose their own.
    """
    return F.to_json(F.struct(*columns), _OPTIONS)
