"""Events as another company would send them, and the mapping that makes them adloom's."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from spark_jobs.config.settings import Settings
from tests.support.source_files import write_files

_KINDS = {"impression": "imp", "click": "clk", "activity": "act", "conversion": "cnv"}
_OF_DEVICE = {"ip": "ip", "user_agent": "agent"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

SOURCE: dict[str, Any] = {
    "event_type": "case $.type when 'imp' then 'impression' when 'clk' then 'click' when 'act' then 'activity' "
    "when 'cnv' then 'conversion' end",
    "when": "$.v = 2",
    "map": {
        "event_id": "$.id",
        "event_time": "timestamp_micros($.ts)",
        "user_id": "coalesce($.uid, $.device.ifa)",
        "is_last": "$.final",
        "campaign_id": "$.ad.campaign",
        "ad_id": "$.ad.creatives[0].id",
        "cost_micros": "micros($.ad.price)",
        "impression_id": "$.ad.imp",
        "data": "$.note",
        "conversion_type": "$.goal.name",
        "value_micros": "micros($.goal.worth)",
        "currency": "upper($.goal.currency)",
        "order_id": "$.goal.order",
        "revokes": "$.goal.refund_of",
        "ip": "$.net.ip",
        "user_agent": "$.net.agent",
    },
    "keep": {
        "publisher": {"from": "$.site.domain"},
        "position": {"from": "$.site.position", "type": "bigint"},
    },
}


def settings_for(source: dict[str, Any], **others: dict[str, Any]) -> Settings:
    """Settings with one source, ``ads``, and ``others`` by section."""
    return Settings.model_validate({"source": {"ads": source}, **others})


def foreign(event: dict[str, Any], number: int) -> dict[str, Any]:
    """An event of adloom's own format in the other form; its kept columns depend on ``number``."""
    time = datetime.fromisoformat(event["event_time"])
    user: dict[str, Any] = {"uid": event["user_id"]} if number % 2 else {"device": {"ifa": event["user_id"], "os": "x"}}
    record: dict[str, Any] = {
        "v": 2,
        "type": _KINDS[event["event_type"]],
        "id": event["event_id"],
        "ts": (time - _EPOCH) // _MICROSECOND,
        "final": "1" if event.get("is_last") else 0,
        "site": {"domain": publisher(number), "position": str(number)},
        **user,
    }
    if net := {name: event[field] for field, name in _OF_DEVICE.items() if field in event}:
        record["net"] = net
    if event["event_type"] == "impression":
        record["ad"] = {
            "campaign": event["campaign_id"],
            "creatives": [{"id": event["ad_id"]}, {"id": "another"}],
            "price": _decimal(event.get("cost_micros") or 0),
        }
    elif event["event_type"] == "click":
        record["ad"] = {"imp": event["impression_id"]}
    elif event["event_type"] == "conversion":
        record["goal"] = _goal(event)
    elif event.get("data") is not None:
        record["note"] = event["data"]
    return record


def _goal(event: dict[str, Any]) -> dict[str, Any]:
    names = {"conversion_type": "name", "order_id": "order", "revokes": "refund_of"}
    goal = {name: event[field] for field, name in names.items() if field in event}
    if "currency" in event:
        goal["currency"] = event["currency"].lower()
    return goal | {"worth": _decimal(event["value_micros"])}


def _decimal(micros: int) -> str:
    return f"{micros // 10**6}.{micros % 10**6:06}"


def first_numbers(files: Sequence[Sequence[dict[str, Any]]]) -> dict[tuple[str, str], int]:
    """By type and id of each event, where in the files it comes first."""
    numbers: dict[tuple[str, str], int] = {}
    for number, event in enumerate(event for events in files for event in events):
        numbers.setdefault(_key(event), number)
    return numbers


def _key(event: dict[str, Any]) -> tuple[str, str]:
    return event["event_type"], str(event["event_id"])


def publisher(number: int) -> str:
    """The domain that the event ``number`` keeps."""
    return f"site-{number % 5}.example"


def write_foreign(folder: Path, files: Sequence[Sequence[dict[str, Any]]], noise: Sequence[bytes] = ()) -> Path:
    """The events of ``files`` in the other form, in the same files; ``noise`` follows in the first one."""
    numbers, written = first_numbers(files), list[list[bytes]]()
    for events in files:
        # A repeat is kept or not as chance has it, so it has the columns of the first.
        records = [json.dumps(foreign(event, numbers[_key(event)])).encode() for event in events]
        written.append([*records, *(noise if not written else ())])
    return write_files(folder, written)
