"""One planted fault per rule: how to spoil a good table, and which rules must then break."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.expectations.good_rows import NOON, RECEIVED, Row, at

Spoil = Callable[[list[Row]], None]


@dataclass(frozen=True)
class Fault:
    """A fault planted for ``rule``, and the rules that inevitably break with it."""

    rule: str
    spoil: Spoil
    companions: tuple[str, ...] = ()


def change(place: int, **fields: Any) -> Spoil:
    """Sets ``fields`` of the row at ``place``."""
    return lambda rows: rows[place].update(fields)


def repeat(place: int, **fields: Any) -> Spoil:
    """Appends a copy of the row at ``place`` with ``fields`` set."""
    return lambda rows: rows.append({**rows[place], **fields})


def _many_quarantined(rows: list[Row]) -> None:
    rows.extend(dict(rows[-1]) for _ in range(2))


_TOO_LONG = "x" * 129
_MICROSECOND = timedelta(microseconds=1)

BRONZE = (
    Fault("raw_not_null", change(-1, raw=None)),
    Fault("source_not_null", change(0, source=None)),
    Fault("ingest_time_not_null", change(0, ingest_time=None)),
    Fault("verdict_not_null", change(0, verdict=None)),
    Fault("verdict_in_set", change(-1, verdict="looks_odd")),
    Fault("quarantined_share", _many_quarantined),
    Fault("event_type_not_null", change(0, event_type=None)),
    Fault("event_type_in_set", change(0, event_type="heartbeat")),
    Fault("event_id_not_null", change(0, event_id=None)),
    Fault("event_id_length", change(0, event_id=_TOO_LONG)),
    Fault("user_id_not_null", change(0, user_id=None)),
    Fault("user_id_length", change(0, user_id="")),
    Fault("event_time_not_null", change(0, event_time=None)),
    Fault("requeued_is_ok", change(-1, requeued_from=RECEIVED - timedelta(minutes=1))),
    Fault("requeued_after_receipt", change(0, requeued_from=RECEIVED)),
    Fault("event_time_not_in_future", change(0, event_time=RECEIVED + timedelta(minutes=5) + _MICROSECOND)),
)

_IMPRESSION, _CLICK, _ACTIVITY, _CONVERSION, _REFUND, _HEARTBEAT = 0, 2, 4, 24, 25, -1
SILVER = (
    Fault("event_unique", repeat(_IMPRESSION, user_id="u9")),
    Fault("event_type_not_null", change(_ACTIVITY, event_type=None)),
    Fault("event_type_in_set", change(_ACTIVITY, event_type="purchase", data=None)),
    Fault("event_time_not_null", change(_ACTIVITY, event_time=None)),
    Fault("event_date_not_null", change(_ACTIVITY, event_date=None)),
    Fault("event_date_matches", change(_ACTIVITY, event_date=(NOON - timedelta(days=1)).date())),
    Fault("event_id_not_null", change(_ACTIVITY, event_id=None)),
    Fault("user_id_not_null", change(_ACTIVITY, user_id=None)),
    Fault("is_last_not_null", change(_ACTIVITY, is_last=None)),
    Fault("ingest_time_not_null", change(_ACTIVITY, ingest_time=None)),
    Fault("event_id_length", change(_ACTIVITY, event_id=_TOO_LONG)),
    Fault("user_id_length", change(_ACTIVITY, user_id=_TOO_LONG)),
    Fault("ip_length", change(_CLICK, ip="")),
    Fault("user_agent_length", change(_CONVERSION, user_agent="x" * 1025)),
    Fault("conversion_type_length", change(_CONVERSION, conversion_type="")),
    Fault("order_id_length", change(_CONVERSION, order_id=_TOO_LONG)),
    Fault("revokes_length", change(_REFUND, revokes="")),
    Fault("conversion_type_not_null", change(_CONVERSION, conversion_type=None)),
    Fault("value_micros_not_null", change(_CONVERSION, value_micros=None)),
    Fault("value_micros_not_negative", change(_CONVERSION, value_micros=-1)),
    Fault("currency_not_null", change(_CONVERSION, currency=None)),
    Fault("currency_length", change(_CONVERSION, currency="EURO")),
    Fault("no_conversion_revokes_itself", change(_REFUND, revokes="p2")),
    Fault("campaign_id_length", change(_IMPRESSION, campaign_id="")),
    Fault("ad_id_length", change(_IMPRESSION, ad_id=_TOO_LONG)),
    Fault("impression_id_length", change(_CLICK, impression_id="")),
    Fault("campaign_id_not_null", change(_IMPRESSION, campaign_id=None)),
    Fault("ad_id_not_null", change(_IMPRESSION, ad_id=None)),
    Fault("cost_micros_not_negative", change(_IMPRESSION, cost_micros=-1)),
    Fault("impression_id_not_null", change(_CLICK, impression_id=None)),
    Fault("no_foreign_fields", change(_CLICK, campaign_id="spring")),
    Fault("heartbeats_are_empty", change(_HEARTBEAT, user_id="u1")),
)

_CLICKED, _UNCLICKED, _ORPHAN = 0, 1, 2
_WINDOW = timedelta(hours=1)
ATTRIBUTIONS = (
    Fault("status_not_null", change(_CLICKED, status=None)),
    Fault("status_in_set", change(_CLICKED, status="viewed")),
    Fault("impression_id_not_null", change(_ORPHAN, impression_id=None)),
    Fault("user_id_not_null", change(_CLICKED, user_id=None)),
    Fault("clicked_is_complete", change(_CLICKED, ad_id=None)),
    Fault("unclicked_is_complete", change(_UNCLICKED, campaign_id=None)),
    Fault("orphan_click_is_complete", change(_ORPHAN, click_id=None)),
    Fault("unclicked_has_no_more", change(_UNCLICKED, click_id="c9")),
    Fault("orphan_click_has_no_more", change(_ORPHAN, cost_micros=5)),
    Fault("cost_micros_not_negative", change(_CLICKED, cost_micros=-1)),
    Fault(
        "click_not_before_impression",
        change(_CLICKED, click_time=at(0) - _MICROSECOND, click_delay_ms=-1),
        companions=("click_delay_ms_in_range",),
    ),
    Fault("click_within_window", change(_CLICKED, click_time=at(0) + _WINDOW + _MICROSECOND, click_delay_ms=3_600_000)),
    Fault(
        "click_delay_ms_in_range",
        change(_CLICKED, click_delay_ms=3_600_001),
        companions=("click_delay_ms_is_right",),
    ),
    Fault("click_delay_ms_is_right", change(_CLICKED, click_delay_ms=120_001)),
    Fault("event_date_not_null", change(_ORPHAN, event_date=None)),
    Fault("event_date_matches", change(_ORPHAN, event_date=(NOON + timedelta(days=1)).date())),
    Fault("click_unique", repeat(_CLICKED, impression_id="i3")),
    Fault(
        "unclicked_unique",
        repeat(_CLICKED, impression_id="i2", impression_time=at(1), click_id="c3", click_delay_ms=60_000),
    ),
    Fault("invalid_in_order", change(_CLICKED, invalid=["b", "a"])),
    Fault("invalid_in_order", change(_ORPHAN, invalid=[])),
    Fault("invalid_impression_has_rules", change(_CLICKED, invalid=None)),
    Fault("invalid_impression_has_rules", change(_ORPHAN, invalid=["a"], invalid_impression=True)),
)


def _swap_events(rows: list[Row]) -> None:
    events = rows[3]["events"]
    events[1], events[2] = events[2], events[1]


def _widen_gap(rows: list[Row]) -> None:
    rows[0]["events"][1]["event_time"] = rows[0]["session_end"] = at(5) + _MICROSECOND


def _drop_event(rows: list[Row]) -> None:
    del rows[3]["events"][4]


def _misname_type(rows: list[Row]) -> None:
    rows[1]["events"][0]["event_type"] = "click"


def _empty(rows: list[Row]) -> None:
    rows[1].update(event_count=0, impression_count=0, events=[])


_S1, _S2, _S4 = 0, 1, 3
SESSIONS = (
    Fault("session_id_not_null", change(_S1, session_id=None)),
    Fault("session_unique", repeat(_S1, user_id="u9")),
    Fault("user_id_not_null", change(_S1, user_id=None)),
    Fault("session_start_not_null", change(_S1, session_start=None)),
    Fault("session_end_not_null", change(_S1, session_end=None)),
    Fault("ends_after_start", change(_S2, session_end=at(1) - _MICROSECOND), companions=("bounds_match_events",)),
    Fault("no_overlap", change(_S2, user_id="u1")),
    Fault("ended_by_not_null", change(_S1, ended_by=None)),
    Fault("ended_by_in_set", change(_S1, ended_by="boredom")),
    Fault("event_date_not_null", change(_S1, event_date=None)),
    Fault("event_date_matches", change(_S1, event_date=(NOON + timedelta(days=1)).date())),
    Fault("event_count_positive", _empty),
    Fault("no_missing_counts", change(_S1, click_count=None)),
    Fault("counts_add_up", change(_S4, activity_count=9), companions=("type_counts_match",)),
    Fault("events_are_all_there", _drop_event, companions=("type_counts_match",)),
    Fault("type_counts_match", _misname_type),
    Fault("events_in_order", _swap_events),
    Fault("gaps_within_session_gap", _widen_gap),
    Fault("bounds_match_events", change(_S1, session_start=at(1))),
)

CAMPAIGN_STATS = (
    Fault("window_start_not_null", change(0, window_start=None)),
    Fault("window_end_not_null", change(0, window_end=None)),
    Fault("window_length", change(0, window_end=at(10) + _MICROSECOND)),
    Fault("window_begins", change(0, window_start=at(1), window_end=at(11))),
    Fault("campaign_id_not_null", change(0, campaign_id=None)),
    Fault("campaign_id_length", change(0, campaign_id="")),
    Fault("window_unique", repeat(0, clicks=0, ctr=0.0)),
    Fault("no_missing_sums", change(1, cost_micros=None)),
    Fault("impressions_not_negative", change(0, impressions=-1, clicks=2, ctr=None)),
    Fault("clicks_not_negative", change(0, clicks=-1, ctr=-0.5)),
    Fault("cost_micros_not_negative", change(0, cost_micros=-1)),
    Fault("not_empty", change(1, clicks=0)),
    Fault("no_missing_net", change(2, valid_clicks=None)),
    Fault("net_within_gross", change(2, valid_cost_micros=1)),
    Fault("net_within_gross", change(2, valid_impressions=-1)),
    Fault("ctr_is_right", change(1, ctr=0.0)),
)

MOVING_AVERAGES = (
    Fault("key_not_null", change(0, key=None)),
    Fault("key_length", change(0, key=_TOO_LONG)),
    Fault("measure_not_null", change(0, measure=None)),
    Fault("measure_in_set", change(0, measure="clicks")),
    Fault("window_start_not_null", change(0, window_start=None)),
    Fault("window_end_not_null", change(0, window_end=None)),
    Fault("ends_after_start", change(0, window_end=at(-1))),
    Fault("no_silence_within", change(0, window_start=at(20 - 9 * 60) - _MICROSECOND)),
    Fault("value_count_not_null", change(0, value_count=None)),
    Fault("value_count_in_range", change(-1, value_count=11)),
    Fault("enough_values", change(0, value_count=9)),
    Fault("mean_not_null", change(0, mean=None)),
    Fault("is_last_not_null", change(0, is_last=None)),
    Fault("last_unique", repeat(-1, mean=7.0)),
)


def _name_at_length(rows: list[Row]) -> None:
    for row in rows[:4]:
        row["user_id"] = _TOO_LONG


USER_STATUS = (
    Fault("user_id_not_null", change(-1, user_id=None), companions=("follows_the_one_before",)),
    Fault("user_id_length", _name_at_length),
    Fault("status_not_null", change(3, status=None)),
    Fault("status_in_set", change(3, status="asleep")),
    Fault("since_not_null", change(4, since=None)),
    Fault("follows_the_one_before", change(1, since=at(-1))),
)


def _touch(place: int, **fields: Any) -> Spoil:
    """Sets ``fields`` of the touch at ``place`` of the first path."""
    return lambda rows: rows[0]["touches"][place].update(fields)


def _swap_touches(rows: list[Row]) -> None:
    first, second = rows[0]["touches"]
    rows[0]["touches"] = [second | {"position": 1}, first | {"position": 2}]


def _drop_touches(rows: list[Row]) -> None:
    rows[0]["touches"] = None


_BOUGHT, _TAKEN_BACK, _ORGANIC = 0, 1, -1
PATHS = (
    Fault("conversion_id_not_null", change(_BOUGHT, conversion_id=None)),
    Fault("conversion_unique", repeat(_BOUGHT, user_id="u9")),
    Fault("user_id_not_null", change(_BOUGHT, user_id=None)),
    Fault("conversion_time_not_null", change(_BOUGHT, conversion_time=None)),
    Fault("conversion_type_not_null", change(_BOUGHT, conversion_type=None)),
    Fault("value_micros_not_null", change(_BOUGHT, value_micros=None)),
    Fault("value_not_negative", change(_BOUGHT, value_micros=-1)),
    Fault("refund_not_positive", change(_TAKEN_BACK, value_micros=1)),
    Fault("currency_not_null", change(_BOUGHT, currency=None)),
    Fault("event_date_not_null", change(_BOUGHT, event_date=None)),
    Fault("event_date_matches", change(_BOUGHT, event_date=(NOON - timedelta(days=1)).date())),
    Fault("outcome_not_null", change(_BOUGHT, outcome=None)),
    Fault("outcome_in_set", change(_BOUGHT, outcome="luck"), companions=("outcome_fits_touches",)),
    Fault("outcome_fits_touches", change(_BOUGHT, outcome="view_through")),
    Fault("touches_not_null", _drop_touches),
    Fault("path_length_not_null", change(_BOUGHT, path_length=None)),
    Fault("path_length_is_right", change(_ORGANIC, path_length=1)),
    Fault("positions_count_up", _touch(1, position=3)),
    Fault("touches_are_complete", _touch(1, click_id="c9")),
    Fault("touches_in_order", _swap_touches),
    Fault("impressions_once", _touch(1, impression_id="i1")),
    Fault("touches_not_after_conversion", _touch(1, touch_time=at(40) + _MICROSECOND)),
)

_FIRST, _UNCREDITED, _ORGANIC_CREDIT = 0, 2, -1
CREDITS = (
    Fault("conversion_id_not_null", change(_ORGANIC_CREDIT, conversion_id=None)),
    Fault("model_not_null", change(_ORGANIC_CREDIT, model=None)),
    Fault("model_in_set", change(_ORGANIC_CREDIT, model="by_gut")),
    Fault("position_not_null", change(_ORGANIC_CREDIT, position=None)),
    Fault("credit_micros_not_null", change(_FIRST, credit_micros=None)),
    Fault("weight_ppm_not_null", change(_ORGANIC_CREDIT, weight_ppm=None)),
    Fault("weight_ppm_in_range", change(_ORGANIC_CREDIT, weight_ppm=1_000_001), companions=("weights_add_up",)),
    Fault("touch_is_complete", change(_FIRST, ad_id=None)),
    Fault("organic_is_empty", change(_ORGANIC_CREDIT, campaign_id="spring")),
    Fault("conversion_time_not_null", change(_ORGANIC_CREDIT, conversion_time=None)),
    Fault("event_date_not_null", change(_FIRST, event_date=None)),
    Fault("event_date_matches", change(_FIRST, event_date=(NOON - timedelta(days=1)).date())),
    Fault("credit_unique", repeat(_UNCREDITED, click_id="c9"), companions=("positions_without_gaps",)),
    Fault("weights_add_up", change(_FIRST, weight_ppm=499_999)),
    Fault("positions_without_gaps", change(1, position=3)),
)

_REPEAT, _TOO_MUCH = 0, 1
LEFT_OUT = (
    Fault("conversion_id_not_null", change(_REPEAT, conversion_id=None)),
    Fault("conversion_unique", repeat(_REPEAT, user_id="u9")),
    Fault("conversion_time_not_null", change(_REPEAT, conversion_time=None)),
    Fault("conversion_type_not_null", change(_REPEAT, conversion_type=None)),
    Fault("reason_not_null", change(_TOO_MUCH, reason=None)),
    Fault("reason_in_set", change(_TOO_MUCH, reason="bad_luck")),
    Fault("reason_fits_conversion", change(_REPEAT, revokes="p1")),
    Fault("left_out_micros_not_null", change(_REPEAT, left_out_micros=None)),
    Fault("value_not_negative", change(_REPEAT, left_out_micros=-1)),
    Fault("refund_not_positive", change(_TOO_MUCH, left_out_micros=1)),
    Fault("currency_not_null", change(_REPEAT, currency=None)),
    Fault("event_date_not_null", change(_REPEAT, event_date=None)),
    Fault("event_date_matches", change(_REPEAT, event_date=(NOON - timedelta(days=1)).date())),
)

FAULTS: dict[str, tuple[Fault, ...]] = {
    "bronze": BRONZE,
    "silver": SILVER,
    "attributions": ATTRIBUTIONS,
    "sessions": SESSIONS,
    "campaign_stats": CAMPAIGN_STATS,
    "moving_averages": MOVING_AVERAGES,
    "user_status": USER_STATUS,
    "paths": PATHS,
    "credits": CREDITS,
    "left_out": LEFT_OUT,
}
