"""All golden cases."""

from dataclasses import replace

from tests.golden.attribution_cases import ATTRIBUTION, DEDUPLICATION
from tests.golden.conversion_cases import CONVERSIONS
from tests.golden.late_cases import EARLY_CLICKS, LATE_RECORDS, LONGEST, STILL_OPEN, TWICE
from tests.golden.runs import UNDRAINED
from tests.golden.session_cases import GAPS
from tests.golden.session_end_cases import LAST_EVENTS, TIES
from tests.support.timeline import Case, Run

GOLDEN: tuple[Case, ...] = (
    *DEDUPLICATION,
    *ATTRIBUTION,
    *CONVERSIONS,
    *GAPS,
    *LAST_EVENTS,
    *TIES,
    *LATE_RECORDS,
    *EARLY_CLICKS,
    *LONGEST,
    *STILL_OPEN,
    TWICE,
    replace(TWICE, run=UNDRAINED),
)


def cases_of(run: Run) -> list[Case]:
    """The cases that share ``run``."""
    return [case for case in GOLDEN if case.run == run]
