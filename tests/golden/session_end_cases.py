"""Golden cases of ``is_last`` and of events at one instant."""

from tests.golden.runs import STANDARD
from tests.support.timeline import Case


def _case(title: str, timeline: str, sessions: str) -> Case:
    return Case(title, timeline, STANDARD, sessions=sessions)


LAST_EVENTS = (
    _case(
        "a session ends after an event with is_last",
        """
        12:00:00  act  a1 u1
        12:01:00  act  a2 u1 last
        12:01:01  act  a3 u1
        """,
        sessions="""
        u1 is_last a1 a2
        u1 timeout a3
        """,
    ),
    _case(
        "a first event with is_last is a session of its own",
        """
        12:00:00  act  a1 u1 last
        12:00:01  act  a2 u1
        """,
        sessions="""
        u1 is_last a1
        u1 timeout a2
        """,
    ),
    _case(
        "is_last on an impression or a click ends a session as well",
        """
        12:00:00  imp  i1 u1 c1 last
        12:00:01  clk  k1 u1 ->i1 last
        12:00:02  act  a1 u1
        """,
        sessions="""
        u1 is_last i1
        u1 is_last k1
        u1 timeout a1
        """,
    ),
    _case(
        "every is_last in a burst ends a session",
        """
        12:00:00  act  a1 u1
        12:00:01  act  a2 u1 last
        12:00:02  act  a3 u1 last
        12:00:03  act  a4 u1
        12:00:04  act  a5 u1 last
        """,
        sessions="""
        u1 is_last a1 a2
        u1 is_last a3
        u1 is_last a4 a5
        """,
    ),
    _case(
        "is_last of one user ends nobody else's session",
        """
        12:00:00  act  a1 u1
        12:00:01  act  a2 u2 last
        12:00:02  act  a3 u1
        """,
        sessions="""
        u1 timeout a1 a3
        u2 is_last a2
        """,
    ),
    _case(
        "an is_last that arrives late cuts the session in two",
        """
        12:00:00  act  a1 u1
        12:02:00  act  a3 u1
        ---
        12:03:00  act  a4 u1
        ---
        12:01:00  act  a2 u1 last
        """,
        sessions="""
        u1 is_last a1 a2
        u1 timeout a3 a4
        """,
    ),
    _case(
        "an event that arrives after is_last but lies before it belongs to the ended session",
        """
        12:01:00  act  a2 u1 last
        ---
        12:02:00  act  a3 u1
        ---
        12:00:00  act  a1 u1
        """,
        sessions="""
        u1 is_last a1 a2
        u1 timeout a3
        """,
    ),
    _case(
        "a silence after is_last longer than the gap makes no empty session",
        """
        12:00:00  act  a1 u1 last
        12:30:00  act  a2 u1
        """,
        sessions="""
        u1 is_last a1
        u1 timeout a2
        """,
    ),
)

TIES = (
    _case(
        "events at one instant are ordered by id",
        """
        12:00:00  act  b u1
        12:00:00  act  a u1
        12:00:00  act  c u1
        """,
        sessions="u1 timeout a b c",
    ),
    _case(
        "ids are ordered by their characters, not as numbers or words",
        """
        12:00:00  act  10 u1
        12:00:00  act  9 u1
        12:00:00  act  b u1
        12:00:00  act  B u1
        12:00:00  act  é u1
        """,
        sessions="u1 timeout 10 9 B b é",
    ),
    _case(
        "events at one instant are ordered by id whatever their types",
        """
        12:00:00  imp  a u1 c1
        12:00:00  act  b u1
        12:00:00  clk  c u1 ->a
        12:00:00  act  d u1
        """,
        sessions="u1 timeout a b c d",
    ),
    _case(
        "events at one instant with one id are ordered by event type",
        """
        12:00:00  imp  x u1 c1
        12:00:00  clk  x u1 ->x
        12:00:00  act  x u1
        """,
        sessions="u1 timeout act/x clk/x imp/x",
    ),
    _case(
        "is_last in a tie splits it by id, and both sessions begin at one instant",
        """
        12:00:00  act  c u1
        12:00:00  act  b u1 last
        12:00:00  act  a u1
        """,
        sessions="""
        u1 is_last a b
        u1 timeout c
        """,
    ),
    _case(
        "every event of a tie with is_last is a session of its own",
        """
        12:00:00  act  b u1 last
        12:00:00  act  a u1 last
        ---
        12:00:00  act  c u1 last
        """,
        sessions="""
        u1 is_last a
        u1 is_last b
        u1 is_last c
        """,
    ),
    _case(
        "is_last in a tie of types splits it by event type",
        """
        12:00:00  imp  x u1 c1
        12:00:00  clk  x u1 ->x last
        12:00:00  act  x u1
        """,
        sessions="""
        u1 is_last act/x clk/x
        u1 timeout imp/x
        """,
    ),
    _case(
        "events 1 us apart are ordered by time, not by id",
        """
        12:00:00.000001  act  a u1
        12:00:00         act  b u1
        """,
        sessions="u1 timeout b a",
    ),
)
