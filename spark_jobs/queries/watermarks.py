"""The watermark of a query, from its checkpoint."""

import json
from datetime import datetime, timedelta

from spark_jobs.config.durations import EPOCH
from spark_jobs.lake.layout import Lake
from spark_jobs.queries.places import checkpoint_batches, checkpoint_in_use, checkpoint_key


def next_watermark(lake: Lake, query: str) -> datetime | None:
    """The watermark under which the next batch of ``query`` will run, with its zone (UTC).

    A running query may have moved on by the time that this is read. None: the query has done no batch, has no watermark
    yet, or its checkpoint cannot be read.
    """
    version = checkpoint_in_use(lake, query)
    done = checkpoint_batches(lake, query, version, "commits")
    if not done:
        return None
    text = lake.files.read(f"{checkpoint_key(query, version)}/commits/{done[-1]}") or b""
    try:
        watermark_ms = int(json.loads(text.splitlines()[1])["nextBatchWatermarkMs"])
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return EPOCH + timedelta(milliseconds=watermark_ms) if watermark_ms > 0 else None
