"""Golden cases for deduplication and attribution. Window: 1 h."""

from tests.golden.runs import STANDARD
from tests.support.timeline import Case


def _case(
    title: str, timeline: str, attributions: str, kept: str | None = None, quarantined: str | None = None
) -> Case:
    return Case(title, timeline, STANDARD, attributions=attributions, kept=kept, quarantined=quarantined)


DEDUPLICATION = (
    _case(
        "an event sent twice in one batch counts once",
        """
        12:00:00  imp  i1 u1 c1
        12:00:00  imp  i1 u1 c1
        12:00:01  clk  k1 u1 ->i1
        12:00:01  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=1000",
        kept="i1 k1",
    ),
    _case(
        "an event sent again in later batches counts once",
        """
        12:00:00  imp  i1 u1 c1
        ---
        12:00:00  imp  i1 u1 c1
        12:00:01  clk  k1 u1 ->i1
        ---
        12:00:00  imp  i1 u1 c1
        12:00:01  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=1000",
        kept="i1 k1",
    ),
    _case(
        "the same id under two event types is two events",
        """
        12:00:00  imp  x u1 c1
        12:00:01  clk  x u1 ->x
        12:00:02  act  x u1
        """,
        attributions="clicked x x delay=1000",
        kept="imp/x clk/x act/x",
    ),
    _case(
        "a broken copy does not hide the good one that follows",
        """
        12:00:00  imp  i1 u1 c1 cost=-1
        12:00:00  imp  i1 u1 c1 cost=5
        """,
        attributions="unclicked i1",
        kept="i1",
        quarantined="invalid_cost_micros",
    ),
    _case(
        "an event from the future changes nothing but the quarantine",
        """
        2099-01-01T00:00:00   act  a1 u1
        9999-12-31T23:59:59   imp  i0 u1 c1
        raw {"event_type": "click", "event_id": "k0"
        ---
        12:00:00              imp  i1 u1 c1
        ---
        12:00:01              clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=1000",
        kept="i1 k1",
        quarantined="event_time_in_future event_time_in_future malformed_json",
    ),
)

ATTRIBUTION = (
    _case(
        "a click inside the window counts",
        """
        12:00:00  imp  i1 u1 c1
        12:30:00  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=1800000",
    ),
    _case(
        "a click exactly one window after its impression counts",
        """
        12:00:00  imp  i1 u1 c1
        13:00:00  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=3600000",
    ),
    _case(
        "a click 1 us before the end of the window counts and its delay is rounded down",
        """
        12:00:00         imp  i1 u1 c1
        12:59:59.999999  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=3599999",
    ),
    _case(
        "a click 1 us after the end of the window is an orphan",
        """
        12:00:00         imp  i1 u1 c1
        13:00:00.000001  clk  k1 u1 ->i1
        """,
        attributions="""
        unclicked    i1
        orphan_click i1 k1
        """,
    ),
    _case(
        "the window is measured in microseconds from the impression",
        """
        12:00:00.000001  imp  i1 u1 c1
        13:00:00.000001  clk  k1 u1 ->i1
        13:00:00.000002  clk  k2 u1 ->i1
        """,
        attributions="""
        clicked      i1 k1 delay=3600000
        orphan_click i1 k2
        """,
    ),
    _case(
        "a click at the instant of its impression counts",
        """
        12:00:00.123456  imp  i1 u1 c1
        12:00:00.123456  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=0",
    ),
    _case(
        "a click less than a millisecond after its impression has no delay",
        """
        12:00:00.000999  imp  i1 u1 c1
        12:00:00.001998  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=0",
    ),
    _case(
        "a click 1 us before its impression is an orphan",
        """
        12:00:00         imp  i1 u1 c1
        11:59:59.999999  clk  k1 u1 ->i1
        """,
        attributions="""
        unclicked    i1
        orphan_click i1 k1
        """,
    ),
    _case(
        "two clicks on one impression are two rows",
        """
        12:00:00  imp  i1 u1 c1
        12:00:01  clk  k1 u1 ->i1
        12:00:02  clk  k2 u1 ->i1
        """,
        attributions="""
        clicked i1 k1 delay=1000
        clicked i1 k2 delay=2000
        """,
    ),
    _case(
        "one click in the window and one after it leave no unclicked row",
        """
        12:00:00  imp  i1 u1 c1
        12:00:01  clk  k1 u1 ->i1
        13:00:01  clk  k2 u1 ->i1
        """,
        attributions="""
        clicked      i1 k1 delay=1000
        orphan_click i1 k2
        """,
    ),
    _case(
        "a click that arrives batches before its impression counts",
        """
        12:00:05  clk  k1 u1 ->i1
        ---
        12:30:00  imp  other u1 c1
        ---
        12:00:00  imp  i1 u1 c1
        """,
        attributions="""
        clicked   i1 k1 delay=5000
        unclicked other
        """,
    ),
    _case(
        "an impression that arrives batches before its click counts",
        """
        12:00:00  imp  i1 u1 c1
        ---
        13:10:00  act  a1 u1
        ---
        12:59:00  clk  k1 u1 ->i1
        """,
        attributions="clicked i1 k1 delay=3540000",
    ),
    _case(
        "a click counts for the impression it names and no other",
        """
        12:00:00  imp  i1 u1 c1
        12:00:01  imp  i2 u1 c1
        12:00:02  clk  k1 u1 ->i2
        """,
        attributions="""
        unclicked i1
        clicked   i2 k1 delay=1000
        """,
    ),
    _case(
        "a click on an impression that never comes is an orphan",
        """
        12:00:00  clk  k1 u1 ->nobody
        12:00:01  clk  k2 u1 ->nobody
        """,
        attributions="""
        orphan_click nobody k1
        orphan_click nobody k2
        """,
    ),
    _case(
        "an impression that nobody clicks is unclicked",
        "12:00:00  imp  i1 u1 c1",
        attributions="unclicked i1",
    ),
    _case(
        "a click by another user still counts for the impression",
        """
        12:00:00  imp  i1 u1 c1
        12:00:01  clk  k1 u2 ->i1
        """,
        attributions="clicked i1 k1 delay=1000",
    ),
    _case(
        "activity takes no part in attribution",
        """
        12:00:00  act  a1 u1
        12:00:01  clk  k1 u1 ->a1
        """,
        attributions="orphan_click a1 k1",
    ),
)
