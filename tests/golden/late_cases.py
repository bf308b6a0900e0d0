"""Golden cases for late records and for a run without drain. Deduplication watermark: 3 h."""

from tests.golden.runs import LATE, STANDARD, UNDRAINED
from tests.support.timeline import Case


def _late(title: str, timeline: str, kept: str, late: int) -> Case:
    return Case(title, timeline, LATE, kept=kept, late=late)


def _early(title: str, timeline: str, attributions: str) -> Case:
    return Case(title, timeline, LATE, attributions=attributions)


def _cut(title: str, timeline: str, sessions: str) -> Case:
    return Case(title, timeline, LATE, sessions=sessions)


def _undrained(title: str, timeline: str, *, attributions: str | None = None, sessions: str | None = None) -> Case:
    return Case(title, timeline, UNDRAINED, attributions=attributions, sessions=sessions)


LATE_RECORDS = (
    _late(
        "an event exactly at the watermark is late",
        """
        16:00:00.000999  act  a0 u1   # the watermark is kept in whole milliseconds: 13:00:00
        ---
        16:00:00         act  a1 u1
        ---
        13:00:00         act  a2 u1
        """,
        kept="a0 a1",
        late=1,
    ),
    _late(
        "an event 1 us past the watermark is not late",
        """
        16:00:00.000999  act  a0 u1
        ---
        16:00:00         act  a1 u1
        ---
        13:00:00.000001  act  a2 u1
        12:59:59.999999  act  a3 u1
        """,
        kept="a0 a1 a2",
        late=1,
    ),
    _late(
        "the batch right after does not feel the watermark yet",
        """
        16:00:00.000999  act  a0 u1
        ---
        12:00:00         act  a1 u1
        ---
        12:00:01         act  a2 u1
        """,
        kept="a0 a1",
        late=1,
    ),
    _late(
        "what a batch teaches about time counts from the second batch after it",
        """
        16:00:00.000999  act  a0 u1
        ---
        17:00:00         act  a1 u1
        ---
        13:30:00         act  a2 u1   # the watermark is still the first file's: 13:00
        ---
        14:00:00         act  a3 u1   # now it is the second one's: 14:00
        14:00:00.000001  act  a4 u1
        """,
        kept="a0 a1 a2 a4",
        late=1,
    ),
    _late(
        "disorder within the first batch makes nothing late",
        """
        16:00:00.000999  act  a0 u1
        11:00:00         act  a1 u1
        """,
        kept="a0 a1",
        late=0,
    ),
    _late(
        "a late copy of a kept event counts as a duplicate",
        """
        16:00:00.000999  act  a0 u1
        12:30:00         imp  i1 u1 c1
        ---
        15:00:00         act  a1 u1
        15:00:00         act  a1 u1   # in time: a duplicate
        ---
        12:30:00         imp  i1 u1 c1
        """,
        kept="a0 i1 a1",
        late=0,
    ),
    _late(
        "an event from the future makes nothing late",
        """
        2099-01-01T00:00:00  act  a9 u1
        ---
        2099-01-01T00:00:00  act  a8 u1
        ---
        14:00:00             act  a1 u1
        """,
        kept="a1",
        late=0,
    ),
)

LONGEST = (
    _cut(
        "a session of a user who is never silent is cut at the longest length since midnight",
        """
        12:24:00         act  a1 u1
        12:28:00         act  a2 u1
        12:29:59.999999  act  a3 u1
        12:30:00         act  a4 u1
        12:34:00         act  a5 u1
        """,
        sessions="""
        u1 timeout a1 a2 a3
        u1 timeout a4 a5
        """,
    ),
    _cut(
        "a cut and a last event at once end one session",
        """
        12:28:00  act  a1 u1
        12:29:00  act  a2 u1 last
        12:31:00  act  a3 u1
        """,
        sessions="""
        u1 is_last a1 a2
        u1 timeout a3
        """,
    ),
)

EARLY_CLICKS = (
    _early(
        "an impression that counts from when it was in view has the click before that",
        """
        12:00:01    imp  i1 u1 c1
        12:00:00.6  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=-400",
    ),
    _early(
        "a click exactly the tolerance before its impression counts",
        """
        12:00:00  clk  k1 u1 ->i1
        12:00:02  imp  i1 u1 c1
        """,
        attributions="clicked i1 k1 delay=-2000",
    ),
    _early(
        "a click 1 us longer before its impression than the tolerance is an orphan",
        """
        12:00:00         clk  k1 u1 ->i1
        12:00:02.000001  imp  i1 u1 c1
        """,
        attributions="""
        unclicked    i1
        orphan_click i1 k1
        """,
    ),
    _early(
        "the delay of an early click is rounded down too",
        """
        12:00:00.0005  imp  i1 u1 c1
        12:00:00       clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=-1",
    ),
    _early(
        "an early click waits for its impression, as long as the tolerance, behind the watermark",
        """
        16:00:00.000999  act  a0 u2
        12:59:59         clk  k1 u1 ->i1
        ---
        16:00:00         act  a1 u2
        ---
        13:00:00.5       imp  i1 u1 c1
        """,
        attributions="clicked i1 k1 delay=-1500",
    ),
    _early(
        "early clicks and late ones count for one impression",
        """
        12:00:00  clk  k1 u1 ->i1
        12:00:01  clk  k2 u1 ->i1
        12:00:02  imp  i1 u1 c1
        13:00:02  clk  k3 u1 ->i1
        """,
        attributions="""
        clicked i1 k1 delay=-2000
        clicked i1 k2 delay=-1000
        clicked i1 k3 delay=3600000
        """,
    ),
)

STILL_OPEN = (
    _undrained(
        "hours without a click delay no unclicked impression",
        """
        12:00:00  imp  i1 u1 c1
        12:00:10  clk  k1 u1 ->i1
        12:30:00  imp  i2 u2 c1
        ---
        14:00:00  imp  i3 u3 c1
        15:30:00  imp  i4 u4 c1
        ---
        17:00:00  imp  i5 u5 c1
        ---
        17:00:01  imp  i6 u6 c1
        """,
        attributions="""
        clicked   i1 k1 delay=10000
        unclicked i2
        """,
    ),
    _undrained(
        "an hour without impressions delays no orphan click",
        """
        12:00:00  clk  k1 u1 ->nobody
        ---
        16:00:00  clk  k2 u1 ->nobody
        """,
        attributions="orphan_click nobody k1",
    ),
    _undrained(
        "a session that may still grow is not emitted",
        """
        12:00:00  act  a1 u1
        12:01:00  act  a2 u1
        ---
        15:00:00  act  a3 u1
        ---
        16:58:00  act  a4 u1
        ---
        16:59:00  act  a5 u1
        """,
        sessions="""
        u1 timeout a1 a2
        u1 timeout a3
        """,
    ),
    _undrained(
        "a user who is never silent has a session for every stretch of the longest length",
        """
        15:50:00  act  a1 u1
        15:55:00  act  a2 u1
        16:00:00  act  a3 u1
        16:05:00  act  a4 u1
        16:10:00  act  a5 u1
        16:15:00  act  a6 u1
        16:20:00  act  a7 u1
        16:25:00  act  a8 u1
        16:30:00  act  a9 u1
        16:35:00  act  a10 u1
        16:40:00  act  a11 u1
        16:45:00  act  a12 u1
        16:50:00  act  a13 u1
        """,
        sessions="u1 timeout a1 a2",
    ),
)

TWICE = Case(
    "a session has the same id in every lake",
    """
    12:00:00  act  a1 u1
    12:01:00  act  a2 u1 last
    12:01:00  act  a3 u1
    """,
    STANDARD,
    sessions="""
    u1 is_last a1 a2
    u1 timeout a3
    """,
)
"""Runs in ``UNDRAINED`` too, to compare the ids."""
