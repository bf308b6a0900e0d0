"""Golden cases of sessions. Gap: 5 min; a silence of exactly the gap does not end a session."""

from tests.golden.runs import STANDARD
from tests.support.timeline import Case


def _case(title: str, timeline: str, sessions: str) -> Case:
    return Case(title, timeline, STANDARD, sessions=sessions)


GAPS = (
    _case(
        "a silence of exactly the gap does not end a session",
        """
        12:00:00  act  a1 u1
        12:05:00  act  a2 u1
        """,
        sessions="u1 timeout a1 a2",
    ),
    _case(
        "a silence 1 s shorter than the gap does not end a session",
        """
        12:00:00  act  a1 u1
        12:04:59  act  a2 u1
        """,
        sessions="u1 timeout a1 a2",
    ),
    _case(
        "a silence 1 us longer than the gap ends a session",
        """
        12:00:00         act  a1 u1
        12:05:00.000001  act  a2 u1
        """,
        sessions="""
        u1 timeout a1
        u1 timeout a2
        """,
    ),
    _case(
        "a silence 1 s longer than the gap ends a session",
        """
        12:00:00  act  a1 u1
        12:05:01  act  a2 u1
        """,
        sessions="""
        u1 timeout a1
        u1 timeout a2
        """,
    ),
    _case(
        "a session lasts as long as no single silence exceeds the gap",
        """
        12:00:00  act  a1 u1
        12:05:00  act  a2 u1
        12:10:00  act  a3 u1
        12:15:00  act  a4 u1
        12:20:00  act  a5 u1
        12:25:00.000001  act  a6 u1
        """,
        sessions="""
        u1 timeout a1 a2 a3 a4 a5
        u1 timeout a6
        """,
    ),
    _case(
        "an event that arrives last and lies between two others joins them into one session",
        """
        12:00:00  act  a1 u1
        12:08:00  act  a3 u1
        ---
        12:30:00  act  a4 u1
        ---
        12:04:00  act  a2 u1
        """,
        sessions="""
        u1 timeout a1 a2 a3
        u1 timeout a4
        """,
    ),
    _case(
        "an event exactly one gap from both its neighbours joins them",
        """
        12:00:00  act  a1 u1
        12:10:00  act  a3 u1
        ---
        12:05:00  act  a2 u1
        """,
        sessions="u1 timeout a1 a2 a3",
    ),
    _case(
        "users do not share sessions",
        """
        12:00:00  act  a1 u1
        12:00:01  act  a2 u2
        12:00:02  act  a3 u1
        """,
        sessions="""
        u1 timeout a1 a3
        u2 timeout a2
        """,
    ),
    _case(
        "impressions, clicks and activity share a session",
        """
        12:00:00  imp  i1 u1 c1
        12:04:00  act  a1 u1
        12:08:00  clk  k1 u1 ->i1
        12:12:00  imp  i2 u1 c2
        """,
        sessions="u1 timeout i1 a1 k1 i2",
    ),
    _case(
        "a click belongs to the session of the user who clicked",
        """
        12:00:00  imp  i1 u1 c1
        12:00:01  clk  k1 u2 ->i1
        """,
        sessions="""
        u1 timeout i1
        u2 timeout k1
        """,
    ),
    _case(
        "a duplicate does not prolong a session",
        """
        12:00:00  act  a1 u1
        12:00:00  act  a1 u1
        ---
        12:00:00  act  a1 u1
        """,
        sessions="u1 timeout a1",
    ),
)
