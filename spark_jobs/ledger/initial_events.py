"""The events that a query began with, as its copy in the lake has them."""

import pyarrow as pa

from spark_jobs.contract.tables import Table
from spark_jobs.lake.layout import Lake
from spark_jobs.lake.table_files import live_files
from spark_jobs.ledger.read_files import TEXT, TIME, Files, read_files
from spark_jobs.queries.places import initial_key

_COLUMNS = {"event_type": TEXT, "event_id": TEXT, "event_time": TIME, "user_id": TEXT}


def initial_events(lake: Lake, query: str) -> pa.Table:
    """The events: ``event_type``, ``event_id``, ``event_time``, ``user_id``."""
    copy = Table("initial", initial_key(query), "The initial state of a query.", ())
    newest = lake.newest_commit(copy.path)
    files: Files = [(file, {}) for file in (live_files(lake, copy, newest) if newest is not None else [])]
    return read_files(lake, files, _COLUMNS, {})
