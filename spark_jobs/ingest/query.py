"""The query ``ingest``: every record that arrives, with a verdict, into bronze."""

from typing import TYPE_CHECKING

from spark_jobs.config.settings import Settings
from spark_jobs.config.sources import kept_columns
from spark_jobs.contract.compatibility import Compatibility
from spark_jobs.contract.events import OBSERVED, QUARANTINED
from spark_jobs.contract.tables import BRONZE_EVENTS
from spark_jobs.queries.jobs import DEDUPLICATE_JOB
from spark_jobs.queries.manifest import KAFKA
from spark_jobs.queries.query import Query
from spark_jobs.queries.state_settings import StateSetting, more_topics, needs_reset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

NAME = "ingest"


def _kind(_settings: Settings, source: str) -> str:
    return source


def _topics(settings: Settings, source: str) -> tuple[str, ...]:
    return tuple(sorted(settings.topics)) if source == KAFKA else ()


def _kept(settings: Settings, _source: str) -> str:
    return ";".join(f"{column.name}:{column.sql_type}" for column in kept_columns(settings.source))


def _judge_kept(before: str, now: str) -> tuple[Compatibility, str]:
    old, new = (dict(_pairs(text)) for text in (before, now))
    if retyped := [name for name in old if new.get(name, old[name]) != old[name]]:
        return (
            Compatibility.BREAKING,
            f"a column never changes its type: keep {retyped[0]} as it is, and add one of another name",
        )
    if missing := [name for name in old if name not in new]:
        return Compatibility.BREAKING, f"gold would have no {missing[0]} from now on: keep it in a source"
    return Compatibility.SAFE, "rows from now on have the new column, and those before have null"


def _pairs(text: str) -> "Iterator[tuple[str, str]]":
    for one in text.split(";") if text else ():
        name, _, sql_type = one.partition(":")
        yield name, sql_type


class IngestQuery(Query):
    """Parses and validates every record; nothing received is dropped."""

    name = NAME
    job = DEDUPLICATE_JOB
    writes = BRONZE_EVENTS
    final = "Every row, as soon as it is written."
    late = "There is no lateness: every record is kept."
    state = (
        needs_reset("source", "positions in one kind of source mean nothing in the other", _kind),
        more_topics(
            "topics",
            _topics,
            lost="unread records of {} would be lost",
            added="new topics are read from their beginning",
        ),
        StateSetting("source.keep", _judge_kept, _kept),
    )

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        from pyspark.sql import functions as F

        from spark_jobs.contract.events import OK
        from spark_jobs.ingest.judge import judge

        quarantined = F.count(F.when(F.col("verdict") != OK, True)).alias(QUARANTINED)
        return judge(sides[0], settings).observe(OBSERVED, quarantined)


QUERY = IngestQuery()
