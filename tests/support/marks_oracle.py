"""The marks that rules give, computed by DuckDB and Python's own reading of addresses: written from the docs alone.

Rules are plain tables, as TOML gives them, with durations in microseconds.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

Rule = Mapping[str, Any]
Mark = tuple[str, str, int, str]
"""Type, id and time (microseconds) of the event, and id of the rule."""
_TEXTS = ("event_type", "event_id", "user_id", "impression_id", "ip", "user_agent")
_SCHEMA = pa.schema([*((name, pa.string()) for name in _TEXTS), ("us", pa.int64())])
_HOUR = 3_600_000_000
_WINDOW = "(us - ((us % {window}) + {window}) % {window})"

_SQL = {
    "user_agent_list": """
        SELECT e.* FROM e WHERE EXISTS (
          FROM (SELECT unnest($patterns) AS pattern) WHERE regexp_matches(e.user_agent, pattern))""",
    "cidr": "SELECT e.* FROM e WHERE e.ip IN (SELECT unnest($inside))",
    "rate": f"""
        SELECT * FROM e WHERE {{key}} IS NOT NULL AND {_WINDOW} + {{window}} <= {{until}}
        QUALIFY count(*) OVER (PARTITION BY event_type, {{key}}, {_WINDOW}) > {{threshold}}""",
    "repeat": """
        SELECT e.* FROM e WHERE (
          SELECT count(*) FROM e AS p WHERE p.impression_id = e.impression_id
          AND (p.us, p.event_id) < (e.us, e.event_id) AND e.us - p.us <= {window}
          AND NOT ({without_elsewhere} AND (p.event_id, p.us) IN (FROM away))) >= {threshold}
        AND NOT ({without_elsewhere} AND (e.event_id, e.us) IN (FROM away))""",
    "elsewhere": "SELECT e.* FROM e WHERE (e.event_id, e.us) IN (FROM away)",
    "delay": """
        SELECT e.* FROM e WHERE e.us - (
          SELECT max(p.us) FROM known AS p WHERE p.us <= e.us AND CASE e.event_type
            WHEN 'click' THEN p.event_type = 'impression' AND p.event_id = e.impression_id
            ELSE p.event_type = 'click' AND p.user_id = e.user_id END) < {threshold}""",
    "sequence": f"""
        SELECT * FROM e WHERE {{key}} IS NOT NULL AND {_WINDOW} + {{window}} <= {{until}}
        AND ({{key}}, {_WINDOW}) NOT IN (
          SELECT ({{key}}, {_WINDOW}) FROM known WHERE {{key}} IS NOT NULL AND event_type IN (SELECT unnest($without)))
        QUALIFY count(*) OVER (PARTITION BY event_type, {{key}}, {_WINDOW}) > {{threshold}}""",
}

_AWAY = """
    CREATE OR REPLACE TABLE away AS
    SELECT k.event_id, k.us FROM known AS k JOIN known AS i
      ON k.event_type = 'click' AND i.event_type = 'impression' AND i.event_id = k.impression_id
    WHERE k.us - i.us BETWEEN 0 AND {longest} AND k.host <> i.host AND k.user_agent <> i.user_agent
      AND '' NOT IN (k.ip, i.ip, k.user_agent, i.user_agent)
      AND NOT EXISTS (
        FROM known AS later WHERE later.event_type = 'impression' AND later.event_id = i.event_id
        AND later.us > i.us AND later.us <= k.us)"""
"""The clicks from elsewhere, up to some time after the last impression before them."""


def expected(events: Iterable[Mapping[str, Any]], rules: Sequence[Rule], until_us: int) -> set[Mark]:
    """The marks of ``events`` (dictionaries with the time as ``us``), of which those before ``until_us`` are known."""
    rows = [{name: event.get(name) for name in _SCHEMA.names} for event in events]
    hosts = pa.array([None if row["ip"] is None else _host(row["ip"]) for row in rows], pa.string())
    with duckdb.connect() as sql:
        sql.register("given", pa.Table.from_pylist(rows, _SCHEMA).append_column("host", hosts))
        sql.execute(f"CREATE TABLE known AS FROM given WHERE us < {until_us}")
        return {mark for rule in rules for mark in _marks(sql, rule, until_us)}


def _marks(sql: duckdb.DuckDBPyConnection, rule: Rule, until_us: int) -> set[Mark]:
    types = rule["event_type"] if isinstance(rule["event_type"], list) else [rule["event_type"]]
    sql.execute("CREATE OR REPLACE TABLE e AS FROM known WHERE event_type IN (SELECT unnest($types))", {"types": types})
    sql.execute(_AWAY.format(longest=rule["window"] if rule["kind"] == "elsewhere" else _HOUR))
    text = _SQL[rule["kind"]].format(
        until=until_us,
        without_elsewhere=rule.get("without_elsewhere", False),
        **{name: rule.get(name) for name in ("key", "window", "threshold")},
    )
    lists: dict[str, Any] = {"patterns": rule.get("patterns"), "without": rule.get("without")}
    if rule["kind"] == "cidr":
        found = sql.execute("SELECT DISTINCT ip FROM e WHERE ip IS NOT NULL").fetchall()
        lists["inside"] = [ip for (ip,) in found if _is_inside(ip, rule["networks"])]
    given = {name: value for name, value in lists.items() if f"${name}" in text}
    first, last = rule.get("from_us", -(2**62)), rule.get("to_us", 2**62)
    within = f"SELECT event_type, event_id, us FROM ({text}) WHERE us >= {first} AND us < {last}"
    return {(*row, rule["id"]) for row in sql.execute(within, given).fetchall()}


def _is_inside(text: str, networks: Sequence[str]) -> bool:
    address = _address(text)
    return address is not None and any(address in ipaddress.ip_network(network) for network in networks)


def _host(text: str) -> str:
    """The one spelling of an address; other text stands for itself."""
    return str(_address(text) or text)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in text else _plain(ipaddress.ip_address(text))
    except ValueError:
        return None


def _plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
