"""Golden cases of conversions: each is kept once by its id, and no other table takes notice of it."""

from tests.golden.runs import LATE, STANDARD
from tests.support.timeline import Case


def _kept(title: str, timeline: str, kept: str) -> Case:
    return Case(title, timeline, STANDARD, kept=kept)


def _sessions(title: str, timeline: str, sessions: str) -> Case:
    return Case(title, timeline, STANDARD, sessions=sessions)


CONVERSIONS = (
    _kept(
        "a conversion is kept once",
        """
        12:00:00  cnv  p1 u1 purchase 5 EUR
        12:00:00  cnv  p1 u1 purchase 5 EUR
        ---
        12:00:00  cnv  p1 u1 purchase 5 EUR
        """,
        kept="p1",
    ),
    _kept(
        "a conversion and a click may share an id",
        """
        12:00:00  clk  x u1 ->nobody
        12:00:00  cnv  x u1 signup 0 EUR
        """,
        kept="clk/x cnv/x",
    ),
    _kept(
        "two conversions of one order are both kept",
        """
        12:00:00  cnv  p1 u1 purchase 5 EUR order=o1
        12:00:03  cnv  p2 u1 purchase 5 EUR order=o1   # the page was loaded again
        """,
        kept="p1 p2",
    ),
    _kept(
        "a refund is kept beside what it takes back, in whatever order they come",
        """
        13:00:00  cnv  r1 u1 purchase 5 EUR order=o1 revokes=p1
        12:00:00  cnv  p1 u1 purchase 5 EUR order=o1
        """,
        kept="p1 r1",
    ),
    Case(
        "a conversion takes no part in attribution",
        """
        12:00:00  cnv  p1 u1 purchase 5 EUR
        12:00:01  clk  k1 u1 ->p1
        """,
        STANDARD,
        attributions="orphan_click p1 k1",
    ),
    _sessions(
        "a conversion does not lengthen a session",
        """
        12:00:00         act  a1 u1
        12:04:00         cnv  p1 u1 purchase 5 EUR
        12:05:00.000001  act  a2 u1
        """,
        sessions="""
        u1 timeout a1
        u1 timeout a2
        """,
    ),
    _sessions(
        "a conversion that is the last ends no session",
        """
        12:00:00  act  a1 u1
        12:01:00  cnv  p1 u1 purchase 5 EUR last
        12:02:00  act  a2 u1
        """,
        sessions="u1 timeout a1 a2",
    ),
    _sessions("a user who only converts has no session", "12:00:00  cnv  p1 u1 signup 0 EUR", sessions=""),
    Case(
        "a conversion moves event time on",
        """
        16:00:00.000999  cnv  p0 u1 purchase 5 EUR
        ---
        16:00:00         act  a1 u1
        ---
        13:00:00         act  a2 u1
        13:00:00         cnv  p2 u1 purchase 5 EUR
        13:00:00.000001  cnv  p3 u1 purchase 5 EUR
        """,
        LATE,
        kept="p0 a1 p3",
        late=2,
    ),
)
