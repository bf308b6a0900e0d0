"""The query ``attribute``: every click joined to its impression, into gold/attributions."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spark_jobs.config.sections import AttributeSettings
from spark_jobs.config.settings import Settings
from spark_jobs.contract.tables import ATTRIBUTIONS, SILVER_EVENTS
from spark_jobs.queries.jobs import ATTRIBUTE_JOB
from spark_jobs.queries.query import Query
from spark_jobs.queries.state_settings import ENGINE, JOIN_STATE, STATE_DISCARDED, TOLERANCE, may_shorten, needs_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from spark_jobs.queries.correction import Correction
    from spark_jobs.queries.resume_point import ResumePoint

NAME = "attribute"


def _longest(at: "ResumePoint") -> AttributeSettings:
    """The settings with the window and the tolerance that the state before or after ``at`` needs."""
    longest = {name: at.longest(f"{NAME}.{name}") for name in ("window", "tolerance")}
    return at.lake.settings.attribute.model_copy(update=longest)


def _horizon(longest: AttributeSettings) -> timedelta:
    """How long before the watermark an event may lie that is open, or in one pair with an open one."""
    return longest.window + 2 * longest.tolerance


class AttributeQuery(Query):
    """Joins every click to its impression: clicked, unclicked or orphan click."""

    name = NAME
    job = ATTRIBUTE_JOB
    reads = (SILVER_EVENTS, SILVER_EVENTS)
    writes = ATTRIBUTIONS
    state_format = 2  # 2: holds the columns that sources keep
    operator = "stream-stream join"
    final = "Every row, as soon as it is written."
    late = "An impression or click behind the watermark is dropped; the ledger counts it."
    state = (
        needs_reset("attribute.join", "rows held for one kind of join come out wrong from another"),
        may_shorten("attribute.window", STATE_DISCARDED),
        TOLERANCE,
        may_shorten("attribute.impression_watermark", STATE_DISCARDED),
        may_shorten("attribute.click_watermark", STATE_DISCARDED),
        JOIN_STATE,
        *ENGINE,
    )
    is_correctable = True
    rows_in_ledger = True
    polls_often = True

    def rows(self, settings: Settings, sides: "Sequence[DataFrame]", initial: "DataFrame | None") -> "DataFrame":
        from spark_jobs.queries.attribute.operator import attribute

        return attribute(sides[0], sides[1], settings.attribute)

    def watermark(self, settings: Settings) -> timedelta:
        # Spark takes the slower of the two.
        return max(settings.attribute.impression_watermark, settings.attribute.click_watermark)

    def closes_after(self, settings: Settings) -> timedelta:
        return self.watermark(settings) + settings.attribute.window

    def open_events(self, at: "ResumePoint") -> "DataFrame":
        from spark_jobs.queries.attribute.rebuild import undecided_pairs

        longest = _longest(at)
        silver, attributions = (at.read_within(table, _horizon(longest)) for table in (SILVER_EVENTS, ATTRIBUTIONS))
        return undecided_pairs(silver, attributions, at.settled_before, longest)

    def adapt_for_reset(self, at: "ResumePoint", sides: "Sequence[DataFrame]") -> "Sequence[DataFrame]":
        from spark_jobs.queries.attribute.rebuild import rejoin_pairs, split_pairs

        longest = _longest(at)
        attributions = at.read_within(ATTRIBUTIONS, _horizon(longest))
        pairs = split_pairs(attributions, at.settled_before, longest, at.lake.settings.attribute)
        return sides[0], rejoin_pairs(sides[1], pairs)

    def write_rebuilt(self, at: "ResumePoint") -> "Callable[[DataFrame], None]":
        from spark_jobs.queries.append_missing import PAIR, append_missing, note_of_reset

        # With a longer window or tolerance, a waiting impression and a waiting click can become a pair.
        there, note = at.read_within(ATTRIBUTIONS, _horizon(_longest(at))), note_of_reset(at.note)
        return lambda rows: append_missing(rows, there, at.lake, ATTRIBUTIONS, note, key=PAIR)

    def correction(self) -> "Correction":
        from spark_jobs.queries.attribute.correction import CORRECTION

        return CORRECTION


QUERY = AttributeQuery()
