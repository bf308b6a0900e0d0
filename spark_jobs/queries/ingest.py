"""The query ``ingest``: every record that arrives, with a verdict, into bronze."""

from typing import TYPE_CHECKING

from spark_jobs.contracts.jobs import DEDUPLICATE_JOB
from spark_jobs.contracts.manifest import KAFKA
from spark_jobs.contracts.progress import OBSERVED, QUARANTINED
from spark_jobs.contracts.settings import Settings
from spark_jobs.contracts.tables import BRONZE_EVENTS
from spark_jobs.queries.description import Query
from spark_jobs.queries.state_settings import needs_reset, only_more

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

NAME = "ingest"


def _rows(settings: Settings, sides: "Sequence[DataFrame]", _initial: "DataFrame | None") -> "DataFrame":
    from pyspark.sql import functions as F

    from spark_jobs.contracts.events import OK
    from spark_jobs.transforms.validate import judge

    quarantined = F.count(F.when(F.col("verdict") != OK, True)).alias(QUARANTINED)
    return judge(sides[0], settings.ingest).observe(OBSERVED, quarantined)


def _topics(settings: Settings, source: str) -> tuple[str, ...]:
    return tuple(sorted(settings.kafka.topics)) if source == KAFKA else ()


QUERY = Query(
    name=NAME,
    job=DEDUPLICATE_JOB,
    summary="Parses and validates every record; nothing received is dropped.",
    writes=BRONZE_EVENTS,
    rows=_rows,
    final="Every row, as soon as it is written.",
    late="There is no lateness: every record is kept.",
    state=(
        needs_reset(
            "source", "positions in one kind of source mean nothing in the other", lambda _settings, source: source
        ),
        only_more(
            "topics",
            _topics,
            lost="unread records of {} would be lost",
            added="new topics are read from their beginning",
        ),
    ),
)
